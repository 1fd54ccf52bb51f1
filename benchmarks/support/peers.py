"""Runs the command-line peers, and swsearch's command line, and reads what they print.

Every table is a dict of (place of the query, place of the subject) to {column: printed text}; the sequences must be
named by `common.numbered`. A peer's output is kept in the working folder and read again if it is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.support.common import command, swsearch

Printed = dict[tuple[int, int], dict[str, str]]

STD = "qaccver saccver pident length mismatch gapopen qstart qend sstart send evalue bitscore"
"""Columns that ``std`` stands for."""

EXTRA = "score qlen slen nident positive gaps ppos btop qseq sseq qcovs qcovhsp"

COLUMNS = f"{STD} {EXTRA}".split()
"""Columns that are asked of blastp and swsearch."""

DIAMOND_COLUMNS = ["qseqid", "sseqid", "evalue", "bitscore", "score"]

GAPS = ("-gapopen", 11, "-gapextend", 1)


def kept(path: Path, run: Callable[[], object]) -> str:
    """Return a file's text, after making it if it is not there."""
    if not path.is_file():
        run()
    return path.read_text()


def parse(text: str, columns: list[str]) -> Printed:
    """Read a tabular report whose first two columns name the query and the subject."""
    rows: Printed = {}
    for line in text.splitlines():
        row = dict(zip(columns, line.split("\t"), strict=True))
        pair = (int(row[columns[0]][1:]), int(row[columns[1]][1:]))
        assert pair not in rows, f"{line[:80]}: a second alignment of the same pair"
        rows[pair] = row
    return rows


def swsearch_hits(queries: Path, subjects: Path, folder: Path, evalue: float) -> Printed:
    """Run ``swsearch search`` for every hit up to an E-value by published statistics, which the others print too."""
    output = folder / "swsearch.tsv"
    swsearch(
        "search", queries, subjects, "--outfmt", f"6 std {EXTRA}", "--max-hits", 10**6, "--evalue", evalue,
        "--statistics", "published", "-o", output, "--quiet",
    )  # fmt: skip
    return parse(output.read_text(), COLUMNS)


def blastp_hits(queries: Path, subjects: Path, folder: Path, evalue: float) -> Printed:
    """Run blastp without composition adjustment and masking: the best alignment of every pair that it finds."""
    output, database = folder / "blastp.tsv", folder / "blastp"

    def run() -> None:
        command("makeblastdb", "-in", subjects, "-dbtype", "prot", "-out", database)
        command(
            "blastp", "-query", queries, "-db", database, "-matrix", "BLOSUM62", *GAPS, "-comp_based_stats", 0,
            "-seg", "no", "-soft_masking", "false", "-evalue", evalue, "-max_target_seqs", 10**6, "-max_hsps", 1,
            "-num_threads", os.cpu_count(), "-outfmt", f"6 std {EXTRA}", "-out", output,
        )  # fmt: skip

    return parse(kept(output, run), COLUMNS)


def diamond_hits(queries: Path, subjects: Path, folder: Path, evalue: float) -> Printed:
    """Run diamond's exact mode without composition adjustment and masking."""
    output, database = folder / "diamond.tsv", folder / "diamond"

    def run() -> None:
        command("diamond", "makedb", "--in", subjects, "-d", database, "--quiet")
        command(
            "diamond", "blastp", "--swipe", "-q", queries, "-d", database, "--comp-based-stats", 0, "--masking", 0,
            "-k", 0, "-e", evalue, "-p", os.cpu_count(), "-o", output, "--quiet", "--outfmt", 6, *DIAMOND_COLUMNS,
        )  # fmt: skip

    return parse(kept(output, run), DIAMOND_COLUMNS)


def ssearch36_scores(queries: Path, subjects: Path, folder: Path, shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Run ssearch36 without statistics, so that it lists every subject by its raw score.

    Returns
    -------
    ndarray, shape (n_queries, n_subjects), int64
        0 where it lists no score.
    """
    output = folder / "ssearch36.txt"

    def run() -> None:
        output.write_text(
            command(
                "ssearch36", "-q", "-T", os.cpu_count(), "-z", "-1", "-s", "BP62", "-f", "-11", "-g", "-1",
                "-b", shape[1], "-d", 0, queries, subjects,
            )
        )  # fmt: skip

    scores = np.zeros(shape, dtype=np.int64)
    query = -1
    for line in kept(output, run).splitlines():
        if begins := re.match(r"\s*\d+>>>q(\d+) ", line):
            query = int(begins.group(1))
        elif listed := re.match(r"s(\d+) .*\(\s*\d+\)\s+(\d+)$", line):
            scores[query, int(listed.group(1))] = int(listed.group(2))
    return scores
