"""Alignments of swsearch-jackhmmer beside those of jackhmmer, by the command line of AlphaFold 3.

Both commands search the same database with E <= 1e-4 and one thread, jackhmmer once, swsearch-jackhmmer --passes
times on the CPU. Rows are those below the query. Neff is the sum of 1 / n over rows and query, n being the rows that
have at least 80 % of a row's residues in its columns, itself included. A common subject has rows in both alignments.
Pairs are pairs of a query and a subject position of common subjects; pairs in both are a percentage of either
program's pairs. Coverage is the mean percentage of query positions with a residue in a row. Time is that of
swsearch-jackhmmer divided by that of jackhmmer. Alignments are read by the rules of AlphaFold 3; hmmbuild and hhmake
read those of swsearch-jackhmmer.

Needs: hmmer, hhsuite; Swiss-Prot for the committed result. A minute a query.
Run:   python -m benchmarks.agreement.jackhmmer_alignments --queries queries.fasta --subjects sprot.fasta
           [--out benchmarks/results/jackhmmer.txt] [--passes 2 --first 12 --out benchmarks/results/jackhmmer_two.txt]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.support import common

IDENTITY = 0.8
OPTIONS = ["-o", "/dev/null", "--noali", "--F1", 0.0005, "--F2", 5e-05, "--F3", 5e-07, "--cpu", 1,
           "-E", 0.0001, "--incE", 0.0001]  # fmt: skip
STAND_IN = [sys.executable, "-c", "from swsearch.__main__ import jackhmmer; jackhmmer()", "--engine", "cpu"]
HEADS = [
    "query", "residues", "rows, jackhmmer", "rows, swsearch", "Neff, jackhmmer", "Neff, swsearch",
    "subjects, jackhmmer", "subjects, swsearch", "common", "pairs in both, % of jackhmmer's",
    "% of swsearch's", "coverage, jackhmmer", "coverage, swsearch", "time",
]  # fmt: skip

Letters = npt.NDArray[np.uint8]


class Rows(NamedTuple):
    """An alignment: names, and letters in all columns, shape (n_rows, n_columns); the query is the first."""

    names: list[str]
    letters: Letters

    @property
    def in_query(self) -> Letters:
        """Letters in the columns of the query, shape (n_rows, n_residues)."""
        return self.letters[:, self.letters[0] != ord("-")]

    def pairs(self) -> dict[str, Letters]:
        """Return pairs of positions by subject, as query position << 32 plus subject position."""
        filled = self.letters != ord("-")
        places, found = np.cumsum(filled, axis=1), dict[str, list[Letters]]()
        for name, row, place in zip(self.names[1:], filled[1:], places[1:], strict=True):
            subject, _, span = name.rpartition("/")
            both = filled[0] & row
            begin = int(span.partition("-")[0]) - 1
            found.setdefault(subject, []).append((places[0][both] << 32) + place[both] + begin)
        return {subject: np.unique(np.concatenate(parts)) for subject, parts in found.items()}

    def neff(self) -> float:
        """Return the effective number of sequences."""
        rows = self.in_query
        filled = rows != ord("-")
        lengths = filled.sum(axis=1)
        near = [int((((rows == row) & own).sum(axis=1) >= IDENTITY * own.sum()).sum())
                for row, own in zip(rows, filled, strict=True)]  # fmt: skip
        return float((1 / np.array(near))[lengths > 0].sum())

    def coverage(self) -> float:
        """Return the mean percentage of query positions in a row; 0 without rows."""
        return 100 * float((self.in_query[1:] != ord("-")).mean()) if len(self.names) > 1 else 0.0


def read(path: Path) -> Rows:
    """Read Stockholm by the rules of AlphaFold 3: parts of a name are joined, and only - is a gap."""
    parts: dict[str, list[str]] = {}
    for line in map(str.strip, path.read_text().splitlines()):
        if line and not line.startswith(("#", "//")):
            name, letters = line.split(maxsplit=1)
            parts.setdefault(name, []).append(letters)
    text = "".join("".join(each) for each in parts.values())
    return Rows(list(parts), np.frombuffer(text.upper().encode(), dtype=np.uint8).reshape(len(parts), -1))


def check_readers(rows: Rows, stockholm: Path) -> None:
    """Have hmmbuild read the Stockholm file, and hhmake its rows in the query's columns."""
    common.command("hmmbuild", "--amino", "-o", "/dev/null", stockholm.with_suffix(".hmm"), stockholm)
    texts = [(name, row.tobytes().decode()) for name, row in zip(rows.names, rows.in_query, strict=True)]
    a3m = common.write(stockholm.with_suffix(".a3m"), texts)
    common.command("hhmake", "-v", 0, "-M", "a3m", "-i", a3m, "-o", stockholm.with_suffix(".hhm"))


def compare(query: tuple[str, str], subjects: Path, database: Path, folder: Path, passes: int) -> list[float]:
    """Return the numbers of a query, in the order of `HEADS`, with the seconds of both commands at the end."""
    fasta = common.write(folder / "query.fasta", [("query", query[1])])
    seconds, found = [], []
    for command, n, searched in ((["jackhmmer"], 1, subjects), (STAND_IN, passes, database)):
        path = folder / f"{len(found)}.sto"
        line = [*command, *OPTIONS, "-N", n, "-A", path, fasta, searched]
        seconds.append(common.timed(lambda line=line: common.command(*line)))  # type: ignore[misc]
        found.append(read(path))
        if found[-1].in_query[0].tobytes().decode() != query[1]:
            sys.exit(f"{query[0]}: the first row of {path.name} is not the query")
    theirs, ours = found
    check_readers(ours, path)
    pairs, own = theirs.pairs(), ours.pairs()
    both = sorted(pairs.keys() & own.keys())
    same = sum(len(np.intersect1d(pairs[name], own[name])) for name in both)
    totals = [sum(len(each[name]) for name in both) for each in (pairs, own)]
    shares = [100 * same / total if total else 0.0 for total in totals]
    return [
        len(query[1]), len(theirs.names) - 1, len(ours.names) - 1, theirs.neff(), ours.neff(), len(pairs), len(own),
        len(both), *shares, theirs.coverage(), ours.coverage(), seconds[1] / seconds[0], *seconds,
    ]  # fmt: skip


def cells(values: npt.ArrayLike) -> list[str]:
    """Return numbers as the table has them: counts, Neff, percentages, a ratio."""
    styles = ["{:,.0f}"] * 3 + ["{:,.1f}"] * 2 + ["{:,.0f}"] * 3 + ["{:.1f}"] * 4 + ["{:.2f}"]
    return [style.format(value) for style, value in zip(styles, np.asarray(values).tolist(), strict=True)]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--passes", type=int, default=1, metavar="N", help="-N of swsearch-jackhmmer, default 1")
    options = parser.parse_args()
    common.need("jackhmmer", "hmmbuild", "hhmake")
    queries, subjects = common.read(options.queries, options.first), common.read(options.subjects)
    rows, every = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, database = common.write(folder / "subjects.fasta", subjects), folder / "subjects.h5"
        common.swsearch("db", "build", plain, "-o", database, "--quiet")
        for query in queries:
            numbers = compare(query, plain, database, folder, options.passes)
            rows.append([query[0], *cells(numbers[:-2])])
            every.append(numbers)
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    numbers = np.array(every)
    totals = np.concatenate([numbers[:, :8].sum(axis=0), numbers[:, 8:12].mean(axis=0)])
    ratio = numbers[:, -1].sum() / numbers[:, -2].sum()
    lines = common.heading(__file__, ["jackhmmer", "hhsearch", "numpy"])
    passes = [f"swsearch-jackhmmer -N {options.passes}"] if options.passes > 1 else []
    lines += [common.data_line(queries, subjects, options), *passes, ""]
    lines += common.table(HEADS, [*rows, ["all: sums, means of %", *cells([*totals, ratio])]])
    lines += ["", f"hmmbuild and hhmake read all {len(queries)} alignments of swsearch-jackhmmer."]
    common.finish(lines, options.out)


if __name__ == "__main__":
    main()
