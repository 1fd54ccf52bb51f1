"""Runs programs on the same two FASTA files, each once, and keeps what they print: for measures of what is found.

A contender is a line of a table: a program of `PROGRAMS` with options. Its raw table and a note on how it was made
stay in a folder, so that a second run measures only what is missing, or was made otherwise: from other sequences, by
another version, with other options. Every program gets its database built before, and is timed as a whole command.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.support.common import command, sha256_of, version_of
from benchmarks.support.timing import EXACT, HEURISTIC, Timing, say, take_turn
from swsearch import profiles

LEAST = 10**6
"""Hits of a query that are asked of every program that has a limit: more than any of them finds."""


@dataclass(frozen=True)
class Program:
    """How a program builds its database, searches, and names its columns.

    Parameters
    ----------
    version : str
        The name that `common.version_of` knows.
    kind : str
        ``exact`` or ``heuristic``.
    build, search : str
        Command lines; {queries}, {subjects}, {database}, {out}, {temporary}, {threads} and {evalue} are filled in. A
        search whose line lacks {out} prints its table.
    columns : tuple of str
        Of the table; among them query, subject, evalue and score (which may be in bits).
    """

    version: str
    kind: str
    build: str
    search: str
    columns: tuple[str, ...] = ("query", "subject", "evalue", "score")


PROGRAMS = {
    "swsearch": Program(
        "swsearch", EXACT,
        "{python} -m swsearch db build {subjects} -o {database}.h5 --quiet",
        "{python} -m swsearch search {queries} {database}.h5 --engine cpu --threads {threads} --quiet "
        f"--max-hits {LEAST} --evalue {{evalue}} --outfmt '6 qseqid sseqid evalue score'",
    ),
    "swsearch-iterated": Program(
        "swsearch", EXACT,
        "{python} -m swsearch db build {subjects} -o {database}.h5 --quiet",
        "{python} -c 'from benchmarks.support.by_iteration import main; main()' {queries} {database}.h5 "
        "--threads {threads} --evalue {evalue}",
        ("iteration", "query", "subject", "evalue"),
    ),
    "ssearch36": Program(
        "ssearch36", EXACT, "",
        "ssearch36 -q -T {threads} -m 8 -E {evalue} {options} {queries} {subjects}",
        (
            "query", "subject", "pident", "length", "mismatch", "gapopen", "qstart", "qend", "sstart", "send",
            "evalue", "score",
        ),
    ),
    "blastp": Program(
        "blastp", HEURISTIC,
        "makeblastdb -in {subjects} -dbtype prot -out {database}",
        "blastp -query {queries} -db {database} -num_threads {threads} -evalue {evalue} -max_hsps 1 "
        f"-max_target_seqs {LEAST} -outfmt '6 qseqid sseqid evalue score'",
    ),
    "diamond": Program(
        "diamond", HEURISTIC,
        "diamond makedb --in {subjects} -d {database} --quiet",
        "diamond blastp -q {queries} -d {database} -p {threads} -e {evalue} -k 0 --quiet --outfmt 6 "
        "qseqid sseqid evalue score",
    ),
    "mmseqs": Program(
        "mmseqs", HEURISTIC,
        "mmseqs createdb {subjects} {database} -v 1",
        "mmseqs easy-search {queries} {database} {out} {temporary} --threads {threads} -e {evalue} -v 1 "
        f"--max-seqs {LEAST} --format-output query,target,evalue,raw",
    ),
    "psiblast": Program(
        "psiblast", HEURISTIC,
        "makeblastdb -in {subjects} -dbtype prot -out {database}",
        # adjustment by composition as psiblast does it for a profile; another is said on stderr for each query
        "psiblast -query {queries} -db {database} -num_threads {threads} -evalue {evalue} -comp_based_stats 1 "
        f"-max_target_seqs {LEAST} -outfmt '7 qseqid sseqid evalue score'",
    ),
    "jackhmmer": Program(
        "jackhmmer", HEURISTIC, "",
        "jackhmmer --cpu {threads} -E {evalue} --noali -o {out} {options} {queries} {subjects}",
    ),
    "phmmer": Program(
        "phmmer", HEURISTIC, "",
        "phmmer --cpu {threads} -E {evalue} --noali -o /dev/null --tblout {out} {options} {queries} {subjects}",
        ("subject", "accession", "query", "accession of query", "evalue", "score", *map(str, range(7, 20))),
    ),
    "hhsearch": Program(
        "hhsearch", EXACT,
        # column states are read by hhblits's prefilter alone: hhsearch needs an entry for each name
        "sh -c 'rm -f {database}_*; ffindex_from_fasta -s {database}_a3m.ffdata {database}_a3m.ffindex {subjects} && "
        "cp {database}_a3m.ffdata {database}_cs219.ffdata && cp {database}_a3m.ffindex {database}_cs219.ffindex'",
        "{python} -c 'from benchmarks.support.by_hhsearch import main; main()' {queries} {database} "
        "--threads {threads} --evalue {evalue}",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Contender:
    """A line of a table: a program with options.

    Parameters
    ----------
    key : str
        Name of its files in the folder.
    name : str
        Name in tables.
    program : str
        Key of `PROGRAMS`.
    options : str
        Further words of its command line.
    """

    key: str
    name: str
    program: str
    options: str = ""

    @property
    def kind(self) -> str:
        """``exact`` or ``heuristic``."""
        return PROGRAMS[self.program].kind

    def missing(self) -> str:
        """Return the reason why it cannot run here; empty if it can."""
        if PROGRAMS[self.program].version == "swsearch" or shutil.which(self.program):
            return ""
        return f"{self.program} is not installed"


@dataclass(frozen=True)
class Run:
    """A contender's table, and what it took.

    Parameters
    ----------
    contender : Contender
        Which one.
    path : Path
        Its table, as the program wrote it.
    seconds, busy : float
        Wall seconds, and processor seconds of all its threads.
    date : str
        When it was made, UTC.
    """

    contender: Contender
    path: Path
    seconds: float
    busy: float
    date: str

    def table(self) -> pd.DataFrame:
        """Read the best alignment of every pair.

        Returns
        -------
        DataFrame
            ``query`` and ``subject`` are numbers (the names without their first letter); ``evalue``, ``score``.
            Queries ascending, hits of each from the best to the worst: by E-value, score, then the program's order.
        """
        columns = list(PROGRAMS[self.contender.program].columns)
        wanted = ["query", "subject", "evalue", "score"]
        if not self.path.stat().st_size:  # nothing was found
            return pd.DataFrame({"query": [0], "subject": [0], "evalue": [0.0], "score": [0.0]}).iloc[:0]
        rows = pd.read_csv(self.path, sep=r"\s+", header=None, names=columns, usecols=wanted, comment="#")[wanted]
        for column in ("query", "subject"):
            rows[column] = rows[column].astype(str).str[1:].astype(int)
        rows["falling"] = -rows["score"]
        rows = rows.sort_values(["query", "evalue", "falling"], kind="stable", ignore_index=True)
        return rows.drop(columns="falling").drop_duplicates(["query", "subject"], ignore_index=True)


@dataclass(frozen=True)
class Comparison:
    """Input and settings of all contenders, and the folder for their tables.

    Parameters
    ----------
    folder : Path
        Folder of tables and databases.
    queries, subjects : Path
        FASTA files; names are a letter and a number, so that no program splits them.
    evalue : float
        Threshold of every contender.
    threads : int
        Number of threads of every contender.
    """

    folder: Path
    queries: Path
    subjects: Path
    evalue: float
    threads: int

    def line(self, template: str, contender: Contender, out: Path) -> list[str]:
        """Fill in a command line; what the template does not place of the options goes to its end."""
        words = shlex.split(template)
        if "{options}" in words:
            place = words.index("{options}")
            words[place : place + 1] = shlex.split(contender.options)
        else:
            words += shlex.split(contender.options)
        values = {
            "python": sys.executable, "queries": self.queries, "subjects": self.subjects, "out": out,
            "database": self.folder / f"db-{contender.program}", "temporary": self.folder / "temporary",
            "threads": self.threads, "evalue": f"{self.evalue:g}",
        }  # fmt: skip
        return [word.format(**values) for word in words]

    def asked(self, contender: Contender) -> dict[str, str]:
        """Say what a table depends on."""
        program = PROGRAMS[contender.program]
        contexts = {"profiles": _sha256_of_profiles()} if "context" in contender.options else {}
        return contexts | {
            "search": f"{program.search} {contender.options}".strip(),
            "version": version_of(program.version),
            "evalue": f"{self.evalue:g}",
            "threads": str(self.threads),
            "queries": sha256_of(self.queries),
            "subjects": sha256_of(self.subjects),
        }

    def build(self, program: str) -> None:
        """Build a program's database, unless it was built from the same subjects."""
        note, asked = self.folder / f"db-{program}.json", {"subjects": sha256_of(self.subjects)}
        if PROGRAMS[program].build and _read(note) != asked:
            command(*self.line(PROGRAMS[program].build, Contender("", "", program), self.folder))
            note.write_text(json.dumps(asked))

    def run(self, contender: Contender) -> Run:
        """Run a contender, or take what it made before."""
        path, note = (self.folder / f"{contender.key}.{suffix}" for suffix in ("tsv", "json"))
        asked = self.asked(contender)
        kept = _read(note)
        if not path.is_file() or kept.get("asked") != asked:
            self.build(contender.program)
            say(f"{contender.key} ...")
            note.unlink(missing_ok=True)
            kept = {"asked": asked, **asdict(self._measure(contender, path)), "date": _now()}
            note.write_text(json.dumps(kept, indent=1))
            say(f"{contender.key}: {kept['wall'][0]:.1f} s, {kept['busy'][0]:.1f} processor seconds")
        return Run(contender, path, kept["wall"][0], kept["busy"][0], kept["date"])

    def _measure(self, contender: Contender, path: Path) -> Timing:
        """Run a contender's command; the table gets its name when it is whole."""
        unfinished, timing = path.with_suffix(".part"), Timing()
        line = self.line(PROGRAMS[contender.program].search, contender, unfinished)
        shutil.rmtree(self.folder / "temporary", ignore_errors=True)  # mmseqs2 would go on with what is there
        take_turn(timing, lambda: _printed(line, unfinished))
        shutil.rmtree(self.folder / "temporary", ignore_errors=True)
        unfinished.replace(path)
        return timing


def run_all(comparison: Comparison, contenders: Iterable[Contender]) -> tuple[list[Run], list[str]]:
    """Run the contenders one after the other; return their tables, and a line for each that is not here."""
    runs, skipped = [], []
    for contender in contenders:
        if missing := contender.missing():
            skipped.append(f"SKIPPED: {contender.name}: {missing}")
            say(skipped[-1])
            continue
        runs.append(comparison.run(contender))
    return runs, skipped


def versions_needed(contenders: Iterable[Contender]) -> list[str]:
    """Return the peers whose versions a report names."""
    here = (PROGRAMS[contender.program].version for contender in contenders if not contender.missing())
    return [name for name in dict.fromkeys(here) if name != "swsearch"]


def times_line(runs: Sequence[Run], threads: int) -> str:
    """Say how the times were measured."""
    days = sorted({run.date[:10] for run in runs})
    return (
        f"Seconds are those of one run of the whole command with {threads} threads, database built before "
        f"({' and '.join(dict.fromkeys((days[0], days[-1])))})."
    )


def _printed(line: list[str], out: Path) -> None:
    """Run a command; unless it is told the file, what it prints goes there."""
    with (Path(os.devnull) if str(out) in line else out).open("wb") as stream:
        done = subprocess.run(line, stdout=stream, stderr=subprocess.PIPE, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{shlex.join(line)}: exit code {done.returncode}\n{done.stderr.decode()[-2000:]}")


def _sha256_of_profiles() -> str:
    """Return the SHA-256 of swsearch's sources of profiles, the library of contexts included."""
    folder = Path(profiles.__file__).parent
    return hashlib.sha256("".join(map(sha256_of, sorted(folder.glob("*.*")))).encode()).hexdigest()


def _read(note: Path) -> dict[str, Any]:
    """Read a note; where there is none it is empty."""
    return dict(json.loads(note.read_text())) if note.is_file() else {}


def _now() -> str:
    """Return date and time."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
