"""Do two revisions of swsearch write the same bytes? Commands of every kind, run by both.

Each command is run by the swsearch of one Python and by that of another, in folders of their own with the same
files in them; its exit code, stdout, stderr and every file that it wrote are compared. Seconds, rates, times of day,
the version and the command line that a report shows are what may differ, and are replaced before the comparison.

With ``--own-databases`` each revision searches databases that it built itself, for revisions with different formats
of the file; databases are then compared by the entries that ``db fetch --all`` gives, and checksums of databases are
what may differ, too.

Needs: two virtual environments, each with its revision installed. About four minutes on two cores.
Run:   python -m benchmarks.agreement.revisions OLD/bin/python NEW/bin/python [--own-databases] [--only WORD]
       [--out FILE]
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from Bio.Data.CodonTable import standard_dna_table
from Bio.SeqIO.FastaIO import SimpleFastaParser

from benchmarks.support.common import finish, heading, table

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"

SEARCH = "search queries.fasta sample.h5 --engine cpu"
FEW = "--max-hits 20"
READS = f"search reads.fasta sample.h5 --engine cpu --translate {FEW}"
GENOME = f"search queries.fasta genome.h5 --engine cpu {FEW}"

COMMANDS = [
    "db build sample.fasta.gz -o built.h5",
    "db build sample.fasta.gz -o built.h5 --mask tantan --memory 64M",
    "db build - -o built.h5 < some.fasta",
    "db append sample.h5 some.fasta",
    "db info sample.h5",
    "db info sample.h5 --json",
    "db verify sample.h5",
    "db fetch sample.h5 P62632 Q95328",
    "db fetch sample.h5 nothing",
    "search queries.fasta sample.fasta.gz",
    SEARCH,
    f"{SEARCH} --threads 1",
    "search - sample.h5 --outfmt 7 < queries.fasta",
    f"{SEARCH} --outfmt 0 {FEW}",
    f"{SEARCH} --outfmt '6 qseqid sseqid evalue bitscore score cigar qcovs stitle qseq sseq btop' {FEW}",
    f"{SEARCH} {FEW} -o hits.tsv -o hits.xml -o hits.json -o hits.jsonl -o hits.sam -o hits.paf -o hits.csv",
    f"{SEARCH} {FEW} -o hits.html",
    f"{SEARCH} {FEW} -o hits.parquet",
    f"{SEARCH} {FEW} -o hits.arrow",
    f"{SEARCH} --statistics fitted {FEW}",
    f"{SEARCH} --statistics fitted {FEW} --outfmt jsonl --dbsize 1000000",
    f"{SEARCH} --statistics published {FEW}",
    f"{SEARCH} --statistics published --max-alignments 4 {FEW} --outfmt 0",
    f"{SEARCH} --statistics none {FEW} --outfmt 0",
    f"{SEARCH} --mode global {FEW} --outfmt 5",
    f"{SEARCH} --mode semiglobal {FEW} --outfmt jsonl",
    f"{SEARCH} --mode semiglobal --statistics none {FEW} --outfmt sam",
    f"{SEARCH} --matrix BLOSUM45 --gap-open 14 --gap-extend 2 --evalue 0.001",
    f"{SEARCH} --matrix PAM70 --gap-open 5 --gap-extend 1 {FEW} --outfmt 15",
    f"{SEARCH} --query-mask tantan {FEW} --outfmt 0",
    f"search queries.fasta sample.fasta.gz --engine cpu --query-mask tantan --subject-mask tantan {FEW}",
    f"{SEARCH} --query-mask lower --subject-mask lower --statistics fitted {FEW}",
    f"{SEARCH} --min-identity 40 --min-query-coverage 50 --min-subject-coverage 50 --min-score 80 {FEW}",
    f"{SEARCH} --exclude-ids ids.txt --outfmt jsonl {FEW}",
    f"{SEARCH} --include-ids ids.txt --statistics fitted -o hits.xml",
    f"{SEARCH} --max-alignments 4 {FEW} --outfmt 0",
    f"{SEARCH} --max-alignments 3 --statistics fitted {FEW} -o hits.tsv -o hits.json",
    f"{SEARCH} --verbose {FEW}",
    f"{SEARCH} --quiet --statistics none --mode global",
    "search some.fasta some.fasta --engine reference --max-hits 3",
    f"{SEARCH} --iterations 3 {FEW}",
    f"{SEARCH} --iterations 2 --statistics published {FEW} -o hits.json -o hits.html",
    f"{SEARCH} --iterations 2 --max-included 5 --max-alignments 2 --outfmt 0 {FEW}",
    f"{SEARCH} --iterations 2 {FEW} --save-msa found.sto",
    f"{SEARCH} --iterations 2 {FEW} --save-profile found.json",
    f"search family.a3m sample.h5 --engine cpu {FEW} --outfmt jsonl",
    f"{SEARCH} --checkpoint kept {FEW}",
    f"search queries.fasta sample.h5 some.fasta --engine cpu {FEW}",
    f"{SEARCH} --sort score --dbsize 1000000 {FEW}",
    f"search one.fasta sample.h5 --engine cpu --query-loc 10-60 {FEW} --outfmt 0",
    f"{READS}",
    f"{READS} --outfmt 0 --strand plus --genetic-code 11",
    f"{READS} --statistics published --max-alignments 3 -o hits.json",
    f"{READS} --min-identity 40 -o hits.xml -o hits.jsonl",
    f"{READS} --frame-shift 15 --outfmt 0",
    f"{READS} --frame-shift 15 --statistics none -o hits.sam",
    f"{GENOME}",
    f"{GENOME} --outfmt 0 --statistics published",
    f"{GENOME} --min-identity 60 -o hits.json -o hits.xml",
    f"{GENOME} --sort score --include-ids contigs.txt",
    f"{GENOME} -o hits.html -o hits.arrow",
    f"search reads.fasta genome.h5 --engine cpu --translate {FEW} --outfmt jsonl",
    f"search reads.fasta genome.h5 --engine cpu --translate {FEW} --statistics none --min-score 50",
    f"msa one.fasta sample.h5 -o folder --engine cpu {FEW}",
    "align queries.fasta some.fasta",
    "align queries.fasta queries.fasta --pairs --mode local --outfmt sam",
    "align some.fasta queries.fasta --mode semiglobal --free-ends subject --outfmt paf",
    "align queries.fasta some.fasta --outfmt jsonl --engine cpu --threads 1",
    "align queries.fasta some.fasta --outfmt cigar --gap-open 0 --gap-extend 2",
    "align one.dna two.dna --alphabet dna --outfmt sam",
    "align one.dna two.dna --alphabet dna --mode local --score-only --outfmt score",
    "doctor",
    "--help",
    "search --help",
    "align --help",
    f"{SEARCH} --evalue -1",
    f"{SEARCH} --matrix BLOSUM61",
    f"{SEARCH} --mode global --max-alignments 2",
    f"{SEARCH} -o hits.unknown",
    "search queries.fasta missing.h5",
    "search broken.fasta sample.h5",
    f"{SEARCH} --engine gpu",
]
"""Commands to run, in the shell's spelling; ``<`` is stdin."""

VARIABLE = [
    (r"\d+\.\d+ s\b", "N s"),
    (r"\d+\.\d+ GCUPS", "N GCUPS"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00|Z| UTC)?", "TIME"),
    (r"\"seconds\": ?[\d.]+", "SECONDS"),
    (r"in [\d.]+ (s|seconds)\b", "in N s"),
    (r"\d+\.\d+, this report included", "N"),
]
"""Patterns that may differ between two runs of one revision, and their replacements."""

OF_FORMATS = [
    (r'("?path"?: ?"|database[ :\t]+)?(sample|genome|built)\.h5[^\n]{0,12}[0-9a-f]{64}', "DATABASE SHA256"),
    (r"[0-9a-f]{64}([^\n]{0,12}(sample|genome|built)\.h5)", "SHA256"),
    (r"n bytes +[\d,]+|\"n_bytes\": \d+|[\d,]+ bytes, [\d,]+ checksums", "BYTES"),
    (r"format[ _]version\"?:? +\d+", "VERSION"),
]
"""Patterns that may also differ between revisions with different database formats."""


class Ran(NamedTuple):
    """Exit code and outputs of a command."""

    code: int
    outputs: dict[str, bytes]


def prepare(folder: Path, python: str) -> None:
    """Put the files that commands are run with into a folder."""
    folder.mkdir()
    (folder / "queries.fasta").write_bytes((DATA / "queries.fasta").read_bytes())
    (folder / "sample.fasta.gz").write_bytes((DATA / "swissprot_sample.fasta.gz").read_bytes())
    (folder / "some.fasta").write_text(
        ">a first record\nMKVLAAGIVGLWWPPKLMNRSTacdefghik\n>b\nMKVLPAGIVG\nGLWWPK\n>c no residues\n>d\nXBZJUO*MKV\n"
    )
    (folder / "broken.fasta").write_bytes(b">a\nMKV\x07LA\n")
    bases = "".join("ACGT"[(7 * i * i + 3 * i) % 11 % 4] for i in range(3000))
    (folder / "one.dna").write_text(f">one\n{bases}\n")
    (folder / "two.dna").write_text(f">two\n{bases[:900]}{bases[950:2000]}AACC{bases[2000:]}\n")
    (folder / "ids.txt").write_text("P62632\nQ95328\nP32866\n")
    codons = {residue: codon for codon, residue in sorted(standard_dna_table.forward_table.items())}
    records = list(SimpleFastaParser((folder / "queries.fasta").open()))
    genes = ["".join(codons.get(residue, "NNN") for residue in letters) for _, letters in records]
    (folder / "one.fasta").write_text(">{}\n{}\n".format(*records[0]))
    (folder / "family.a3m").write_text(f">family\n{records[0][1]}\n>other\n{records[0][1][:-20]}{'-' * 20}\n")
    (folder / "reads.fasta").write_text("".join(f">r{k}\n{gene[:90]}A{gene[90:]}\n" for k, gene in enumerate(genes)))
    (folder / "genome.fasta").write_text("".join(f">c{k}\n{bases[:500]}{gene}ACGT\n" for k, gene in enumerate(genes)))
    (folder / "contigs.txt").write_text("c0\nc2\n")
    run(folder, python, "db build sample.fasta.gz -o sample.h5")
    run(folder, python, "db build genome.fasta -o genome.h5 --translate")


def run(folder: Path, python: str, line: str) -> Ran:
    """Run one command in a copy of a folder's files; return its exit code, stdout, stderr and new files."""
    command, _, stdin = line.partition(" < ")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    given = before[stdin] if stdin else b""
    done = subprocess.run(
        [python, "-P", "-m", "swsearch", *shlex.split(command)], cwd=folder, input=given, capture_output=True,
        check=False, env={"PATH": "/usr/bin:/bin", "COLUMNS": "100", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    outputs = {"stdout": done.stdout, "stderr": done.stderr}
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            outputs.update((each.name, each.read_bytes()) for each in path.iterdir() if path.name != "kept")
            shutil.rmtree(path)
        elif before.get(path.name) != path.read_bytes():
            outputs[path.name] = path.read_bytes()
            if path.name not in before and path.name not in ("sample.h5", "genome.h5"):
                path.unlink()
            elif path.name in before:
                path.write_bytes(before[path.name])
    return Ran(done.returncode, outputs)


def comparable(name: str, written: bytes, folder: Path, python: str = "") -> bytes:
    """Return what was written without what may differ; of a database its entries, which a Python reads, if given."""
    if name.endswith((".parquet", ".arrow")):
        return written
    if name.endswith(".h5") and python and len(written) > 1:
        (folder / "compared").write_bytes(written)
        entries = run(folder, python, "db fetch compared --all").outputs["stdout"]
        (folder / "compared").unlink()
        return entries
    if name.endswith(".h5"):
        return database_content(written, folder)
    text = written.decode("utf-8", "surrogateescape")
    for pattern, instead in [*VARIABLE, *(OF_FORMATS if python else [])]:
        text = re.sub(pattern, instead, text)
    return text.encode("utf-8", "surrogateescape")


def database_content(written: bytes, folder: Path) -> bytes:
    """Return every dataset and attribute of a database, but for when and by which version it was made."""
    import h5py

    path = folder / "compared.h5.copy"
    path.write_bytes(written)
    parts: list[str] = []

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        parts.extend(
            f"{name}@{key}={value!r}"
            for key, value in sorted(item.attrs.items())
            if not re.search("created|version|time", key)
        )
        if isinstance(item, h5py.Dataset):
            content = item[()].tobytes() if item.size else b""
            if name.startswith("contents/"):  # they say again when it was made
                content = re.sub(rb'"created":"[^"]*"', b"", content)
            parts.append(f"{name}: {item.dtype} {item.shape} {content.hex()}")

    with h5py.File(path) as file:
        visit("/", file)
        file.visititems(visit)
    path.unlink()
    return "\n".join(parts).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", default="", help="commands that hold this word")
    parser.add_argument("--own-databases", action="store_true", help="each revision searches its own")
    parser.add_argument("--show", action="store_true", help="print both sides of what differs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[tuple[str, str, str, str]] = []
    different = 0
    with tempfile.TemporaryDirectory() as work:
        folders = [Path(work) / name for name in ("old", "new")]
        pythons = (options.old, options.new)
        prepare(folders[0], options.old)
        if options.own_databases:
            prepare(folders[1], options.new)
        else:
            shutil.copytree(
                folders[0], folders[1]
            )  # one database for both, whose time of creation is in its checksum
        readers = pythons if options.own_databases else ("", "")
        for line in (line for line in COMMANDS if options.only in line):
            old, new = (run(folder, python, line) for folder, python in zip(folders, pythons, strict=True))
            wrong = ["exit code"] if old.code != new.code else []
            for name in sorted({*old.outputs, *new.outputs}):
                sides = [
                    comparable(name, ran.outputs.get(name, b"-"), folder, reader)
                    for ran, folder, reader in zip((old, new), folders, readers, strict=True)
                ]
                if sides[0] != sides[1]:
                    wrong.append(name)
                    if options.show:
                        sys.stdout.write("\n".join(f"{side[:3000]!r}" for side in sides) + "\n")
            different += bool(wrong)
            n_bytes = sum(len(each) for each in old.outputs.values())
            rows.append((f"`{line}`", str(old.code), f"{n_bytes:,}", ", ".join(wrong) or "same"))
            print(*rows[-1], sep="  ", file=sys.stderr)
    columns = ["command", "exit code", "bytes", "compared"]
    lines = [*heading(__file__, ["h5py"]), "", *table(columns, rows), "", f"{len(rows)} commands, {different} differ"]
    finish(lines, options.out)
    if different:
        sys.exit(1)


if __name__ == "__main__":
    main()
