"""Recognition of inputs that are not FASTA, and advice to convert them; databases are real where possible."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from support.command_line import fails, run
from support.db_helpers import HBA, HBB
from swsearch.db import Database, read_fasta
from swsearch.errors import DatabaseError, SequenceError

TEXT = f">a\n{HBA}\n>b\n{HBB}\n"
DATA = TEXT.encode()

FILES: dict[str, dict[str, bytes]] = {
    "blast": {"NAME.pin": b"\0\0\0\5", "NAME.psq": b"\0\1", "NAME.phr": b"0\x80", "NAME.pdb": b"\0"},
    "blast volumes": {"NAME.pal": b"#\nTITLE x\n", "NAME.00.psq": b"\0"},
    "blast nucleotides": {"NAME.nin": b"\0\0\0\5", "NAME.nsq": b"\1"},
    "diamond": {"NAME.dmnd": bytes.fromhex("6d18ee15a4f84a02") + bytes(30)},
    "mmseqs": {"NAME": b"MKV\n\0", "NAME.dbtype": b"\0" * 4, "NAME.index": b"0\t0\t5\n", "NAME_h": b"a\n\0"},
    "mmseqs in parts": {"NAME.0": b"MKV\n\0", "NAME.dbtype": b"\0" * 4, "NAME.index": b"0\t0\t5\n"},
}
SAID = {
    "blast": "is a BLAST database; turn it into FASTA with: blastdbcmd -entry all -db {name} -out {name}.fasta",
    "blast nucleotides": "is a BLAST database of nucleotides; turn it into FASTA with: blastdbcmd -entry all",
    "diamond": "is a DIAMOND database; turn it into FASTA with: diamond getseq -d {name} > {name}.fasta",
    "mmseqs": "is an MMseqs2 database; turn it into FASTA with: mmseqs convert2fasta {name} {name}.fasta",
}
NAMES = [
    *[(kind, name) for kind in FILES for name in ("NAME", *FILES[kind]) if name not in ("NAME.0", "NAME.00.psq")],
    ("mmseqs", "NAME_h"),
]


def said(kind: str, name: object) -> str:
    return SAID.get(kind, SAID[kind.split(maxsplit=1)[0]]).format(name=name)


@pytest.mark.parametrize(("kind", "given"), dict.fromkeys(NAMES))
def test_databases_of_others_by_any_of_their_names(tmp_path: Path, kind: str, given: str) -> None:
    for name, data in FILES[kind].items():
        (tmp_path / name.replace("NAME", "proteins")).write_bytes(data)
    path = tmp_path / given.replace("NAME", "proteins")
    with pytest.raises(SequenceError) as caught:
        list(read_fasta(path))
    words = said(kind, tmp_path / "proteins")
    assert str(caught.value).startswith(f"{path}: ") and words in str(caught.value)
    with pytest.raises(DatabaseError, match=re.escape(words)):
        Database.open(path)
    path.write_text(TEXT)
    with pytest.raises(DatabaseError, match="is not a swsearch database; build one from FASTA"):
        Database.open(path)


def test_names_are_quoted_as_a_shell_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("-my proteins", "it's"):
        Path(f"{name}.pin").write_bytes(b"\0")
    with pytest.raises(SequenceError, match=re.escape("-db './-my proteins' -out './-my proteins.fasta'")):
        list(read_fasta("-my proteins"))
    with pytest.raises(SequenceError, match="""-db 'it'"'"'s' """):
        list(read_fasta("it's"))


def test_a_fasta_file_may_stand_beside_its_databases(tmp_path: Path) -> None:
    path = tmp_path / "proteins"
    path.write_text(TEXT)
    for files in FILES.values():
        for name, data in files.items():
            if name != "NAME":
                (tmp_path / name.replace("NAME", "proteins")).write_bytes(data)
    for data in (DATA, b"\n" + DATA, gzip.compress(DATA)):
        path.write_bytes(data)
        assert len(list(read_fasta(path))) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@read1\nMKV\n+\nIII\n", "looks like a FASTQ file"),
        ("@HD\tVN:1.6\n", "looks like a SAM file"),
        ("LOCUS       X 10 aa\n", "looks like a GenBank or GenPept file"),
        ("ID   INS_HUMAN Reviewed;\n", "looks like a UniProt or EMBL file"),
        ("HMMER3/f [3.3]\nNAME x\n", "looks like an HMMER profile"),
        ("# STOCKHOLM 1.0\n", "looks like a Stockholm alignment"),
        ("CLUSTAL W\n", "looks like a Clustal alignment"),
        ("\n<!DOCTYPE html>\n", "looks like an HTML or XML page; was the download an error page?"),
        ("data_1ABC\n", "looks like an mmCIF structure"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_other_formats(tmp_path: Path, text: str, words: str, packed: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(SequenceError, match=rf"not FASTA: this {words}"):
        list(read_fasta(path))


def test_where_queries_and_subjects_are_named(tmp_path: Path) -> None:
    fasta = tmp_path / "q.fasta"
    fasta.write_text(TEXT)
    (tmp_path / "proteins.pin").write_bytes(b"\0")
    words = said("blast", "proteins")
    fails(run("search", "proteins", fasta, cwd=tmp_path), 1, words)
    fails(run("search", fasta, "proteins", cwd=tmp_path), 2, words)
    fails(run("align", "proteins", fasta, cwd=tmp_path), 1, words)
    fails(run("db", "build", "proteins", "-o", "out.h5", cwd=tmp_path), 1, words)
    assert not (tmp_path / "out.h5").exists()


def tar(form: int, name: str = "in.fasta") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT.encode()))
    data = packed.getvalue()
    if form == tarfile.USTAR_FORMAT:
        return data
    # as tar of 1979 wrote it: no magic, and a checksum of what is left
    header = bytearray(data[:512])
    header[257:265] = bytes(8)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data[512:]


TAR = tar(tarfile.USTAR_FORMAT)
IS_TAR = "is a tar archive; unpack it and give the FASTA files inside"
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(600)
PACKED = {
    "a.tar": (TAR, IS_TAR),
    "old.tar": (tar(tarfile.GNU_FORMAT), IS_TAR),
    "of a long name.tar": (tar(tarfile.USTAR_FORMAT, ">a"), IS_TAR),
    "a.tar.gz": (gzip.compress(TAR), IS_TAR),
    "a.tar.xz": (lzma.compress(TAR), IS_TAR),
    "a.lzma": (lzma.compress(DATA, lzma.FORMAT_ALONE), "is compressed with lzma (.lzma); unpack it first"),
    "a.gz.gz": (gzip.compress(gzip.compress(DATA)), "is compressed twice, gzip inside gzip; decompress it once"),
    "a.xz.gz": (gzip.compress(lzma.compress(DATA)), "is compressed twice, xz inside gzip; decompress it once"),
    "a.zip.gz": (gzip.compress(b"PK\3\4" + bytes(99)), "is a zip archive; unpack it"),
    "a.Z": (b"\x1f\x9dxxxx", "is compressed with compress (.Z); unpack it first"),
    "a.h5.gz": (gzip.compress(HDF5), "is an HDF5 file inside gzip data; unpack it first"),
    "a.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(99), "is a 7-Zip archive; unpack it"),
    "utf-32-be": (b"\0\0\xfe\xff" + TEXT.encode("utf-32-be"), "is UTF-32 text; convert it with iconv -f utf-32 -t"),
    "a.utf-32.gz": (gzip.compress(TEXT.encode("utf-32")), "is UTF-32 text; convert it"),
    **{
        name: (TEXT.encode(name), f"is {name[:6].upper()} text; convert it with iconv -f {name} -t utf-8")
        for name in ("utf-32", "utf-32le", "utf-32be", "utf-16", "utf-16le", "utf-16be")
    },
}


@pytest.mark.parametrize("name", PACKED)
def test_archives_and_other_encodings(tmp_path: Path, name: str) -> None:
    data, words = PACKED[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SequenceError, match=re.escape(f"{name}: {words}")):
        list(read_fasta(tmp_path / name))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_the_bytes_that_are_looked_at_first_are_not_lost(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    for n in (1, 505, 506, 507, 508, 509, 510, 1 << 17):
        (tmp_path / "in").write_bytes(pack(b">a\n" + b"M" * n + b"\n>b\nK"))
        assert [len(record.codes) for record in read_fasta(tmp_path / "in")] == [n, 1]


MAKERS = {
    "blast": ["makeblastdb", "-in", "in.fasta", "-dbtype", "prot", "-out", "proteins"],
    "diamond": ["diamond", "makedb", "--in", "in.fasta", "-d", "proteins"],
    "mmseqs": ["mmseqs", "createdb", "in.fasta", "proteins"],
}


@pytest.mark.peer
@pytest.mark.parametrize("kind", MAKERS)
def test_real_databases(tmp_path: Path, kind: str) -> None:
    if shutil.which(MAKERS[kind][0]) is None:
        pytest.skip(f"needs {MAKERS[kind][0]}")
    (tmp_path / "in.fasta").write_text(TEXT)
    subprocess.run(MAKERS[kind], cwd=tmp_path, check=True, capture_output=True)
    made = [path for path in tmp_path.iterdir() if path.name != "in.fasta"]
    for name in ("proteins", *(path.name for path in made if path.stat().st_size > 20)):
        done = run("db", "build", name, "-o", "out.h5", cwd=tmp_path)
        fails(done, 1, said(kind, "proteins"))
    # what the message says is what to do
    command = str(done.stderr).partition("FASTA with: ")[2]
    subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
    assert [record.identifier for record in read_fasta(tmp_path / "proteins.fasta")] == ["a", "b"]
