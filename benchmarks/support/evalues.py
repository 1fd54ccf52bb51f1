"""E-values of all hits, by swsearch's statistics and by other programs, each search made once and kept.

swsearch is asked through its public functions only, so that what is measured is what users get. Whatever is asked in
the same way again is read from a folder: a search is known by its sequences, scoring, threshold, and the version of
the program, of swsearch's own statistics by the bytes of what they are made from.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import swsearch
from benchmarks.support.common import Records, command, numbered, version_of, write
from swsearch.options.kinds import Mode
from swsearch.scoring import Scoring

Found = dict[tuple[int, int], float]
"""E-value by the places of query and subject."""

OURS = ("fitted", "published", "context")
"""Statistics of `swsearch.search`, and fitted ones of queries that are scored by contexts."""

FASTA_PROGRAMS: dict[Mode, str] = {"local": "ssearch36", "global": "ggsearch36", "semiglobal": "glsearch36"}
"""The program of the FASTA package for each mode. ggsearch36 compares only subjects whose length is between 80 and
125 % of the query's. glsearch36 aligns the whole query with a part of the subject, our semi-global mode leaves the
ends of either free."""

DEFAULTS = Scoring()
"""The scoring that programs are compared with: BLOSUM62 11/1."""

CONTEXTS = Scoring("PFASUM60")
"""The scoring of the preset context, and of sensitive."""

ALL = 10**6
"""More hits than any query here has."""

_FOLDER = Path(swsearch.__file__).parent
_SOURCES = {
    "published": ["statistics/karlin_altschul.py", "statistics/blast_constants.txt"],
    "fitted": ["statistics/**/*.py", "statistics/*.txt", "pipeline/**/*.py"],
    "context": ["statistics/**/*.py", "statistics/*.txt", "pipeline/**/*.py", "profiles/contexts.*"],
}
"""Source files that determine E-values, besides exact scores."""


@dataclass(frozen=True)
class System:
    """A matrix, gap costs and a mode.

    Parameters
    ----------
    scoring : Scoring
        Matrix and gap costs.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    """

    scoring: Scoring
    mode: Mode

    @property
    def costs(self) -> str:
        """Name and costs, as in tables."""
        return f"{self.scoring.matrix.name} {self.scoring.gap_open}/{self.scoring.gap_extend}"

    def peers(self) -> list[str]:
        """Name the programs that search so, with statistics of their own."""
        if self.costs != System(DEFAULTS, self.mode).costs:
            return []
        return ["blastp", "ssearch36"] if self.mode == "local" else [FASTA_PROGRAMS[self.mode]]

    def statistics(self) -> list[str]:
        """Name swsearch's statistics for it."""
        from swsearch.statistics.karlin_altschul import published_statistics

        contexts = ["context"] if self.scoring == CONTEXTS else []
        published = ["published"] if published_statistics(self.scoring, self.mode) is not None else []
        return ["fitted", *published, *contexts]


class Searches:
    """Searches in one set of subjects.

    Parameters
    ----------
    subjects : list of (str, str)
        What is searched.
    folder : Path
        Where results are kept, or found.
    engine : str
        What scores; results do not depend on it.
    """

    def __init__(self, subjects: Records, folder: Path, engine: str = "cpu"):
        self.subjects, self.folder, self.engine = subjects, folder, engine
        self._digest = _digest_of(subjects)
        self._database: Any = None
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Searches:
        return self

    def __exit__(self, *_: object) -> None:
        if self._database is not None:
            self._database.close()

    def found(
        self, source: str, queries: Records, system: System, evalue: float = 10.0, dbsize: int | None = None
    ) -> Found:
        """Return every hit up to an E-value.

        Parameters
        ----------
        source : str
            One of `OURS`, or a program's name; then its own statistics with its defaults, and BLOSUM62 11/1.
        queries : list of (str, str)
            Sequences; their names do not matter.
        system : System
            Scoring and mode.
        evalue : float
            Threshold.
        dbsize : int, optional
            Residues that E-values refer to, of swsearch only.
        """
        scoring = system.scoring
        asked = "\n".join(
            [
                self._digest, _digest_of(queries), system.mode, scoring.matrix.scores.tobytes().hex(),
                f"{system.costs} {evalue} {dbsize}", _made_by(source),
            ]
        )  # fmt: skip
        kept = self.folder / f"{source}-{system.mode}-{hashlib.sha256(asked.encode()).hexdigest()[:20]}.tsv"
        if not kept.is_file():
            found = (
                self._ours(source, queries, system, evalue, dbsize)
                if source in OURS
                else self._theirs(source, queries, evalue)
            )
            text = "".join(f"{query}\t{subject}\t{value!r}\n" for (query, subject), value in found.items())
            made = kept.with_suffix(".new")
            made.write_text(text)
            made.replace(kept)
        rows = (line.split("\t") for line in kept.read_text().splitlines())
        return {(int(query), int(subject)): float(value) for query, subject, value in rows}

    def _ours(self, source: str, queries: Records, system: System, evalue: float, dbsize: int | None) -> Found:
        """Search with swsearch."""
        if self._database is None:
            self._database = swsearch.Database.from_records(numbered(self.subjects, "s"))
        results = swsearch.search(
            numbered(queries, "q"), self._database, scoring=system.scoring, mode=system.mode,
            statistics="published" if source == "published" else "fitted", contexts=source == "context",
            evalue=evalue, dbsize=dbsize, max_hits=ALL, engine=self.engine,
        )  # fmt: skip
        found: Found = {}
        for place, result in enumerate(results):
            for hit in result.hits:
                if hit.evalue is not None:
                    found[place, hit.subject_index] = hit.evalue
        return found

    def _theirs(self, program: str, queries: Records, evalue: float) -> Found:
        """Search with another program."""
        subjects = self._subjects_file()
        with TemporaryDirectory(dir=self.folder) as folder:
            asked = write(Path(folder) / "queries.fasta", numbered(queries, "q"))
            if program == "blastp":
                text = command(
                    "blastp", "-query", asked, "-db", self._blast_database(subjects), "-evalue", evalue,
                    "-max_hsps", 1, "-max_target_seqs", ALL, "-num_threads", os.cpu_count(),
                    "-outfmt", "6 qseqid sseqid evalue",
                )  # fmt: skip
                rows = [(line.split("\t")) for line in text.splitlines()]
            elif program == "phmmer":
                hits = Path(folder) / "hits.tbl"
                command("phmmer", "--cpu", os.cpu_count(), "-E", evalue, "--noali", "--tblout", hits, asked, subjects)
                lines = (line.split() for line in hits.read_text().splitlines() if line[0] != "#")
                rows = [[words[2], words[0], words[4]] for words in lines]
            else:
                text = command(
                    program, "-q", "-T", os.cpu_count(), "-m", 8, "-E", evalue, "-d", 0, "-s", "BP62", "-f", "-11",
                    "-g", "-1", asked, subjects,
                )  # fmt: skip
                rows = [[*line.split("\t")[:2], line.split("\t")[10]] for line in text.splitlines()]
        found: Found = {}
        for query, subject, value in rows:
            pair = int(query[1:]), int(subject[1:])
            found[pair] = min(float(value), found.get(pair, float("inf")))
        return found

    def _subjects_file(self) -> Path:
        """Write the subjects, once."""
        path = self.folder / f"subjects-{self._digest[:12]}.fasta"
        return path if path.is_file() else write(path, numbered(self.subjects, "s"))

    def _blast_database(self, subjects: Path) -> Path:
        """Make blastp's database, once."""
        path = subjects.with_suffix("")
        if not path.with_suffix(".pin").is_file():
            command("makeblastdb", "-in", subjects, "-dbtype", "prot", "-out", path)
        return path


@contextmanager
def kept_in(folder: Path | None) -> Iterator[Path]:
    """Give a folder for `Searches`: this one, or one that is gone afterwards."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory() as temporary:
        yield Path(temporary)


def by_query(found: Found, n_queries: int) -> list[list[float]]:
    """Return every query's E-values, the least first."""
    values: list[list[float]] = [[] for _ in range(n_queries)]
    for (query, _), value in found.items():
        values[query].append(value)
    return [sorted(each) for each in values]


def _digest_of(records: Records) -> str:
    """Return the SHA-256 of sequences."""
    return hashlib.sha256("\n".join(letters for _, letters in records).encode()).hexdigest()


def _made_by(source: str) -> str:
    """Return what a program's E-values follow from."""
    if source not in OURS:
        return f"{source} of {version_of(source if source in ('blastp', 'phmmer') else 'ssearch36')}"
    digest = hashlib.sha256(source.encode())
    for path in sorted(path for pattern in _SOURCES[source] for path in _FOLDER.glob(pattern) if path.is_file()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
