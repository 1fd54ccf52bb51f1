"""Hits by iteration, as the programs that iterate print them, in one form.

A table has a row for each hit: ``iteration`` from 1, ``query`` and ``subject`` (numbers: the names without their
first letter) and ``evalue``; hits of a query in an iteration stand from the best to the worst, by the program's own
E-values. A program that stops early, since nothing new was found, has found in further iterations what it found in
its last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from benchmarks.support.contenders import Run

COLUMNS = ["iteration", "query", "subject", "evalue"]

Hit = tuple[int, int, int, float]
"""A row."""


def table_of(hits: Iterable[Hit], n_iterations: int) -> pd.DataFrame:
    """Make a table, each pair once, at its best; queries that stopped early are carried on to the last iteration."""
    rows = pd.DataFrame(list(hits), columns=COLUMNS)
    rows = rows.sort_values(["iteration", "query", "evalue"], kind="stable")
    rows = rows.drop_duplicates(["iteration", "query", "subject"])
    last = rows.groupby("query")["iteration"].transform("max")
    final = rows[rows["iteration"] == last]
    more = [
        final[final["iteration"] < iteration].assign(iteration=iteration) for iteration in range(2, n_iterations + 1)
    ]
    every = pd.concat([rows, *more]).sort_values(["iteration", "query", "evalue"], kind="stable", ignore_index=True)
    return every[every["iteration"] <= n_iterations].reset_index(drop=True)


def tables(runs: Sequence[Run]) -> pd.DataFrame:
    """Read what one contender printed: all iterations in one run, or one more in every run."""
    if len(runs) == 1:
        run = runs[0]
        if run.contender.program in ("swsearch-iterated", "hhsearch"):
            return read_hits(run.path)
        read = {"psiblast": psiblast_hits, "jackhmmer": jackhmmer_hits}[run.contender.program]
        return table_of(read(run.path), iterations_asked(run))
    parts = [run.table().assign(iteration=iteration)[COLUMNS] for iteration, run in enumerate(runs, 1)]
    return pd.concat(parts, ignore_index=True)


def iterations_asked(run: Run) -> int:
    """Return how many iterations the options of a run ask for."""
    words = run.contender.options.split()
    return int(words[1 + next(place for place, word in enumerate(words) if word in ("-N", "-num_iterations"))])


def psiblast_hits(path: Path) -> Iterator[Hit]:
    """Read psiblast's ``-outfmt '7 qseqid sseqid evalue score'``, in which a comment begins each iteration."""
    iteration = 0
    with path.open() as stream:
        for line in stream:
            if line.startswith("# Iteration:"):
                iteration = int(line.split()[2])
            elif line[0] == "q":
                query, subject, evalue, _ = line.split("\t")
                yield iteration, int(query[1:]), int(subject[1:]), float(evalue)


_NUMBER = r"\s+([\d.e+-]+)"
_HMMER_ROW = re.compile(rf"[+-]?{_NUMBER * 7}\s+\d+\s+s(\d+)")


def jackhmmer_hits(path: Path) -> Iterator[Hit]:
    """Read jackhmmer's report, made with ``--noali``: E-values of whole sequences, round by round.

    The domains that follow are tables of another form.
    """
    iteration = query = 0
    with path.open() as stream:
        for line in stream:
            if line.startswith("Query:"):
                iteration, query = 1, int(line.split()[1][1:])
            elif line.startswith("@@ Round:"):
                iteration = int(line.split()[2])
            elif found := _HMMER_ROW.match(line):
                yield iteration, query, int(found.group(8)), float(found.group(1))


def read_hits(path: Path) -> pd.DataFrame:
    """Read a table of the four columns of this module, tab-separated, without a header; iterations are complete."""
    rows = pd.read_csv(path, sep="\t", header=None, names=COLUMNS)
    for column in ("query", "subject"):
        rows[column] = rows[column].astype(str).str.lstrip("qs").astype(int)
    return table_of(rows.itertuples(index=False, name=None), int(rows["iteration"].max()))
