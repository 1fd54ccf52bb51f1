"""Shared code of the benchmark scripts: arguments, FASTA, the peers' spelling of a scoring system, reports.

No measurement belongs here.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import lzma
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

EXAMPLES = Path("/usr/share/doc/mmseqs2/example-data")
"""Where Debian's mmseqs2-examples puts its data."""

SUBJECTS = EXAMPLES / "DB.fasta.gz"
"""20,000 proteins, 9,055,569 residues."""

QUERIES = EXAMPLES / "QUERY.fasta.gz"
"""500 queries; the first twenty are taken unless ``--first`` says otherwise."""

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode

ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join(
        filter(None, [str(Path(str(find_spec("swsearch").origin)).parents[1]), os.environ.get("PYTHONPATH")])  # type: ignore[union-attr]
    )
}
"""With the swsearch that is imported here, wherever a process starts."""

Records = list[tuple[str, str]]
"""(identifier, upper-case residues)."""

_VERSIONS: dict[str, tuple[list[str], str]] = {
    "blastp": (["blastp", "-version"], r"blastp: (\S+)"),
    "tblastn": (["tblastn", "-version"], r"tblastn: (\S+)"),
    "blastx": (["blastx", "-version"], r"blastx: (\S+)"),
    "diamond": (["diamond", "version"], r"version (\S+)"),
    "hhsearch": (["hhsearch", "-h"], r"HHsearch (\S+)"),
    "jackhmmer": (["jackhmmer", "-h"], r"HMMER (\S+)"),
    "mmseqs": (["mmseqs", "version"], r"(\S+)"),
    "phmmer": (["phmmer", "-h"], r"HMMER (\S+)"),
    "psiblast": (["psiblast", "-version"], r"psiblast: (\S+)"),
    "ssearch36": (["ssearch36"], r"version: (\S+)"),
}


def arguments(documentation: str, *, files: bool = True) -> argparse.ArgumentParser:
    """Make a parser that knows ``--out`` and, unless told otherwise, the two sequence files.

    Parameters
    ----------
    documentation : str
        The script's docstring.
    files : bool
        Whether the script searches.
    """
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", "--output", type=Path, metavar="FILE", help="also write the report here")
    if files:
        parser.add_argument("--queries", type=Path, default=QUERIES, help="FASTA, default %(default)s")
        parser.add_argument("--subjects", type=Path, default=SUBJECTS, help="FASTA, default %(default)s")
        parser.add_argument("--first", type=int, default=20, help="queries to take, default %(default)s")
    return parser


def read_titles(path: Path) -> Records:
    """Read a FASTA file, plain, gzipped or xz, independently of swsearch: whole headers, and residues."""
    from Bio.SeqIO.FastaIO import SimpleFastaParser

    if not path.is_file():
        sys.exit(f"{path}: no such file; benchmarks/README.md says where the data comes from")
    with {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)(path, "rt") as stream:
        return [(title, letters.upper()) for title, letters in SimpleFastaParser(stream)]


def read(path: Path, first: int | None = None) -> Records:
    """Read a FASTA file as `read_titles` does, identifiers without descriptions."""
    return [(title.split(maxsplit=1)[0], letters) for title, letters in read_titles(path)][:first]


def genome(path: Path) -> str:
    """Return the letters of the first record of a file."""
    return read(path, 1)[0][1]


def write(path: Path, records: Iterable[tuple[str, str]]) -> Path:
    """Write a plain FASTA file, which every peer reads."""
    path.write_text("".join(f">{name}\n{letters}\n" for name, letters in records))
    return path


def numbered(records: Records, prefix: str) -> Records:
    """Rename records s0, s1, ...: unique, short, and nothing that a peer would take apart."""
    return [(f"{prefix}{place}", letters) for place, (_, letters) in enumerate(records)]


def spread(records: Sequence[tuple[str, str]], n: int) -> Records:
    """Take n records at equal distances."""
    return [records[k * len(records) // n] for k in range(n)]


def residues(records: Records) -> int:
    """Count the residues."""
    return sum(len(letters) for _, letters in records)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    if not path.is_file():
        sys.exit(f"{path}: no such file; benchmarks/README.md says where the data comes from")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def numbers(text: str) -> list[int]:
    """Read whole numbers with commas between them, for an option."""
    return [int(part) for part in text.split(",")]


def need(*programs: str) -> None:
    """Exit unless the programs are installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; benchmarks/README.md names the packages")


def command(*parts: object) -> str:
    """Run a program to its end and return what it printed; exit with its message if it fails."""
    line = [str(part) for part in parts]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(line)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def swsearch(*parts: object) -> str:
    """Run swsearch's command line in a process of its own."""
    return command(sys.executable, "-m", "swsearch", *parts)


def timed(work: Callable[[], object]) -> float:
    """Return the wall seconds of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def machine() -> str:
    """Return the processor's name and the number of processors."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} processors"


def version_of(name: str) -> str:
    """Return the version of a program or a Python package."""
    if name in _VERSIONS and shutil.which(name):
        line, pattern = _VERSIONS[name]
        done = subprocess.run(line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        found = re.search(pattern, done.stdout + done.stderr)
        return f"{name} {found.group(1).rstrip(',') if found else '(unknown version)'}"
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"{name} ({'not installed' if name in _VERSIONS else 'checkout'})"


def heading(script: str, names: Sequence[str]) -> list[str]:
    """Return the first lines of a report: script, date, machine, versions."""
    versions = ", ".join([f"Python {platform.python_version()}", *map(version_of, ["swsearch", *names])])
    return [
        f"{'/'.join(Path(script).parts[-3:])}, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
        f"{machine()}; {platform.system()} {platform.release()}",
        versions,
    ]


def data_line(queries: Records, subjects: Records, options: argparse.Namespace) -> str:
    """Say what was searched."""
    return (
        f"{options.queries.name}: {len(queries)} queries, {residues(queries):,} residues; "
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
        f"{residues(queries) * residues(subjects) / 1e9:.1f} Gcells"
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a markdown table's lines."""
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]


def finish(lines: Iterable[str], out: Path | None) -> None:
    """Print a report and, if asked, write it to a file."""
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
