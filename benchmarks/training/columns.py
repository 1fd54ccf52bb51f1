"""Columns of alignments of proteins: what `contexts.py` trains the library of contexts on.

Queries that are similar to a domain of the superfamilies of the half ``confirmation`` of SCOPe (`halves` of
`sensitivity_measures.py`) are left out, so that this half can measure the library; and so are those whose last
profile is. Similar is a hit of E <= 0.001.
Each other query is searched among `MOST_SUBJECTS` of --subjects, and the columns of what it includes are counted,
weighted as for a profile. Every --chunk queries have a file in --work; the same command goes on from there.

The package's library is trained on two halves: --part 3/6, 4/6 and 5/6 with --iterations 2, and --part 0/6, 1/6 and
2/6 with --iterations 3, in a folder each: later iterations find more distant relatives.

Needs: SCOPe, and Swiss-Prot in clusters of MMseqs2, whose representatives are the queries and the subjects:
       mmseqs easy-cluster uniprot_sprot.fasta queries tmp --min-seq-id 0.3 -c 0.7 -s 1 --cluster-steps 1
       mmseqs easy-linclust uniprot_sprot.fasta subjects tmp --min-seq-id 0.7 -c 0.8
       On an H200 with 16 processors both halves take four and a half minutes, in six processes.
Run:   python -m benchmarks.training.columns --queries queries_rep_seq.fasta --subjects subjects_rep_seq.fasta
           --domains scop40.fasta.xz --work FOLDER [--iterations 2] [--part 3/6]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import swsearch
from benchmarks.statistics.sensitivity_measures import HALVES, halves, read_scope
from benchmarks.support.common import Records, arguments, numbered, read
from benchmarks.support.timing import say
from swsearch.profiles.construction import observations_of

SIMILAR = 0.001
"""E-value up to which proteins are similar."""

SEED = 53
"""Of the order of the queries and subjects."""

MOST_SUBJECTS, LONGEST_SUBJECT = 145_000, 2000
"""Subjects that are searched, and most residues of one."""

MOST_ROWS = 24
"""Rows that are kept of an alignment, the query included."""

SHORTEST, LONGEST = 60, 600
"""Residues of the queries."""


def held_out(path: Path) -> Records:
    """Return the domains of the superfamilies that measure the library."""
    domains, labels = read_scope(path)
    there = halves(labels, None)[HALVES.index("confirmation")]
    reserved = np.isin(labels.superfamily, labels.superfamily[there])
    return [domains[place] for place in np.flatnonzero(reserved)]


def is_related(queries: Sequence[Any], left_out: swsearch.Searcher) -> list[bool]:
    """Return whether queries, sequences or profiles, are similar to reserved domains."""
    return [bool(result.hits) for result in left_out.search(queries)]


def count_columns(
    queries: Records, searcher: swsearch.Searcher, left_out: swsearch.Searcher
) -> dict[str, np.ndarray]:
    """Search with each unrelated query, and return the columns of all whose profiles are unrelated, one by one.

    Some rows of each alignment, the query first, are kept: ``sizes`` has their number and that of the columns.
    """
    generator = np.random.default_rng(len(queries[0][1]))
    parts, sizes = [], []
    unrelated = [query for query, related in zip(queries, is_related(queries, left_out), strict=True) if not related]
    profiles = [result.next_profile for result in searcher.search(unrelated) if result.next_profile is not None]
    for profile, related in zip(profiles, is_related(profiles, left_out), strict=True):
        alignment = profile.alignment
        if related or alignment is None:
            continue
        observed, _ = observations_of(alignment)
        others = generator.permutation(np.arange(1, len(alignment)))[: MOST_ROWS - 1]
        rows = alignment.columns[np.append(0, np.sort(others))]
        parts.append((observed.frequencies, observed.observations, rows.ravel()))
        sizes.append(rows.shape)
    frequencies, observations, letters = (list(part) for part in zip(*parts, strict=True))
    return {
        "sizes": np.array(sizes, dtype=np.int32),
        "frequencies": np.concatenate(frequencies).astype(np.float32),
        "observations": np.concatenate(observations).astype(np.float32),
        "rows": np.concatenate(letters),
    }


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__, files=False)
    parser.add_argument("--queries", type=Path, required=True, help="FASTA")
    parser.add_argument("--subjects", type=Path, required=True, help="FASTA")
    parser.add_argument("--domains", type=Path, required=True, help="SCOPe's FASTA")
    parser.add_argument("--work", type=Path, required=True, help="folder of columns")
    parser.add_argument("--iterations", type=int, default=1, help="of each search, default %(default)s")
    parser.add_argument("--chunk", type=int, default=100, help="queries of a file, default %(default)s")
    parser.add_argument("--part", default="0/1", metavar="K/N", help="every N-th chunk from K on, default all")
    parser.add_argument("--engine", default="auto", help="default %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="default %(default)s")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    options.work.mkdir(parents=True, exist_ok=True)
    part, parts = (int(one) for one in options.part.split("/"))
    drawn = [record for record in read(options.queries) if SHORTEST <= len(record[1]) <= LONGEST]
    random.Random(SEED).shuffle(drawn)
    chunks = [drawn[first : first + options.chunk] for first in range(0, len(drawn), options.chunk)]
    subjects, reserved = read(options.subjects), held_out(options.domains)
    random.Random(SEED).shuffle(subjects)
    subjects = [record for record in subjects if len(record[1]) <= LONGEST_SUBJECT][:MOST_SUBJECTS]
    say(f"{len(drawn):,} queries, {len(subjects):,} subjects; {len(reserved):,} domains are left out")
    used: dict[str, Any] = {"engine": options.engine, "threads": options.threads, "max_hits": 1}
    with (
        swsearch.Searcher(numbered(reserved, "r"), **used, evalue=SIMILAR) as left_out,
        swsearch.Searcher(
            numbered(subjects, "s"), **used, preset="default", keep_profiles=True, inclusion_evalue=SIMILAR,
            max_included=1000, iterations=options.iterations,
        ) as searcher,
    ):  # fmt: skip
        for k in range(part, len(chunks), parts):
            path = options.work / f"columns{k:05d}.npz"
            if path.exists():
                continue
            columns = count_columns(chunks[k], searcher, left_out)
            with path.with_suffix(".part").open("wb") as stream:
                np.savez_compressed(stream, **columns)
            path.with_suffix(".part").rename(path)
            say(f"{path.name}: {len(columns['sizes'])} queries, {len(columns['observations']):,} columns")


if __name__ == "__main__":
    main()
