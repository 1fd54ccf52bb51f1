"""Recognition of other file formats and databases, with advice for conversion."""

from __future__ import annotations

import shlex
from pathlib import Path

from swsearch.db.format import FORMAT_NAME, OLD_MANIFEST

_BLAST_SUFFIXES = {
    f".{kind}{part}" for kind in "pn" for part in ("al", "db", "hr", "in", "js", "og", "os", "ot", "sq", "tf", "to")
}
"""Extensions of makeblastdb's files: ``p`` for proteins, ``n`` for nucleotides."""

_MMSEQS_SUFFIXES = {".dbtype", ".index", ".lookup", ".source"}

FILE_HEAD_BYTES = 512
"""First bytes by which a file is recognised: a tar archive's header has so many."""

_UNICODE = (
    (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b">\0\0\0", "utf-32le"), (b"\0\0\0>", "utf-32be"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b">\0", "utf-16le"), (b"\0>", "utf-16be"),
)  # fmt: skip
"""Byte order marks, or a '>' without one."""

_BINARY = (
    (b"PK\x03\x04", "is a zip archive; unpack it and give the FASTA file inside"),
    (b"\x1f\x9d", "is compressed with compress (.Z); unpack it first"),
    (b"LZIP\1", "is compressed with lzip; unpack it first"),
    (b"\x04\x22\x4d\x18", "is compressed with lz4; unpack it first"),
    (b"\x5d\x00\x00", "is compressed with lzma (.lzma); unpack it first, such as with xz -d"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7-Zip archive; unpack it and give the FASTA file inside"),
    (b"Rar!\x1a\x07", "is a RAR archive; unpack it and give the FASTA file inside"),
    (b"%PDF", "is a PDF document, expected FASTA"),
    *((begin, f"is {name[:6].upper()} text; convert it with iconv -f {name} -t utf-8") for begin, name in _UNICODE),
)
"""First bytes of a file, and what to say of it."""

_HDF5 = (b"\x89HDF\r\n\x1a\n", b"swsearch database")
"""Beginnings of HDF5 files, of any tool or of ours."""

_DIAMOND = b"\x6d\x18\xee\x15\xa4\xf8\x4a\x02"
"""The number that a DIAMOND database begins with."""

_TEXT = (
    (b"HMMER", "an HMMER profile, which may be a query of search; hmmemit -c writes its consensus as FASTA"),
    (b"# STOCKHOLM", "a Stockholm alignment, which may be a query; esl-reformat fasta writes its sequences as FASTA"),
    (b"CLUSTAL", "a Clustal alignment, which may be a query of search; give its sequences as FASTA, without gaps"),
    (b"LOCUS ", "a GenBank or GenPept file; Biopython's SeqIO.convert turns it ('genbank') into FASTA"),
    (b"ID   ", "a UniProt or EMBL file; Biopython's SeqIO.convert turns it ('swiss', 'embl') into FASTA"),
    (b"##gff", "a GFF annotation; get the sequences as FASTA"),
    (b"@HD\t", "a SAM file; samtools fasta turns it into FASTA"),
    (b"@SQ\t", "a SAM file; samtools fasta turns it into FASTA"),
    (b"BAM\1", "a BAM file; samtools fasta turns it into FASTA"),
    (b"@", "a FASTQ file; seqtk seq -A turns it into FASTA"),
    (b"HEADER    ", "a PDB structure; get its sequences as FASTA"),
    (b"ATOM  ", "a PDB structure; get its sequences as FASTA"),
    (b"data_", "an mmCIF structure; get its sequences as FASTA"),
    (b"<", "an HTML or XML page; was the download an error page? Fetch the file again, as FASTA"),
)
"""First bytes of a text that is no FASTA, and what it looks like; the first that fits."""


def foreign_bytes(head: bytes, is_file: bool, compression: str = "") -> str:
    """Return the advice for a file with these first bytes, `FILE_HEAD_BYTES` or fewer; empty if it may be FASTA.

    ``is_file`` is False for a pipe; ``compression`` is the one that the bytes were in.
    """
    for begin, what in _BINARY:
        if head.startswith(begin):
            return what
    if _is_tar(head):
        return "is a tar archive; unpack it and give the FASTA files inside"
    if head.startswith(_HDF5):
        if compression:
            return f"is an HDF5 file inside {compression} data; unpack it first"
        if not is_file:
            return "is an HDF5 file that comes through a pipe; give a database by its file name, as the subjects"
        return "is an HDF5 file, expected FASTA; a swsearch database is given as the subjects of a search"
    if head.lstrip().startswith(b"{") and any(f'"{name}"'.encode() in head for name in (FORMAT_NAME, OLD_MANIFEST)):
        return "is a manifest of volumes, expected FASTA; it is given as the subjects of a search, as a database is"
    return ""


def _is_tar(head: bytes) -> bool:
    if len(head) < FILE_HEAD_BYTES or b"\0" not in head:
        return False
    import tarfile

    try:
        tarfile.TarInfo.frombuf(head[:FILE_HEAD_BYTES], "utf-8", "surrogateescape")
    except tarfile.HeaderError:  # its checksum differs
        return False
    return True


def foreign_text(head: bytes) -> str:
    """Return the likely format of a text by its first bytes, with advice; empty if there is none."""
    return next((what for begin, what in _TEXT if head.startswith(begin)), "")


def foreign_database(path: str, head: bytes = b"") -> str:
    """Return the advice for a database of BLAST, DIAMOND or MMseqs2; empty for any other file.

    ``path`` is one of its files, or the name that its program takes. ``head`` has the first bytes of the file.
    """
    try:
        if head.startswith(_DIAMOND) or (not head and Path(f"{path}.dmnd").is_file()):
            return _advice("a DIAMOND database", "diamond getseq -d {name} > {fasta}", path.removesuffix(".dmnd"))
        return _blast(path) or _mmseqs(path)
    except (OSError, ValueError):  # names that no file can have
        return ""


def _blast(path: str) -> str:
    for name in _names(path, _BLAST_SUFFIXES):
        for kind, what in (("p", "a BLAST database"), ("n", "a BLAST database of nucleotides")):
            # an alias stands for several volumes, NAME.00.pin and so on
            if any(Path(f"{name}.{kind}{part}").is_file() for part in ("in", "al")):
                return _advice(what, "blastdbcmd -entry all -db {name} -out {fasta}", name)
    return ""


def _mmseqs(path: str) -> str:
    for name in _names(path, _MMSEQS_SUFFIXES):
        for stem in (name.removesuffix("_h"), name):  # the headers of NAME stand in NAME_h
            if Path(f"{stem}.dbtype").is_file() and Path(f"{stem}.index").is_file():
                return _advice("an MMseqs2 database", "mmseqs convert2fasta {name} {fasta}", stem)
    return ""


def _names(path: str, suffixes: set[str]) -> list[str]:
    """Return what a database may be named if this is its name or one of its files."""
    suffix = Path(path).suffix
    return [path, path.removesuffix(suffix)] if suffix in suffixes else [path]


def _advice(what: str, command: str, name: str) -> str:
    """Put a sentence together; names are quoted as a shell needs it, and one may begin with a dash."""
    name = f"./{name}" if name.startswith("-") else name
    names = {"name": shlex.quote(name), "fasta": shlex.quote(f"{name}.fasta")}
    return f"is {what}; turn it into FASTA with: {command.format(**names)}"
