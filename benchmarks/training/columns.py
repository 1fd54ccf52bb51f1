"""Columns of alignments of proteins: what `contexts.py` trains the library of contexts on.

Proteins of --proteins are drawn by lot. One that is similar to a domain of the superfamilies of the half
``confirmation`` of SCOPe (`halves` of `sensitivity_measures.py`) is left out, so that this half can measure the
library; and so is one that is similar to an earlier one of the draw, with at least --redundant percent identity.
Similar is a hit of E <= 0.001. The others are searched once among --subjects of the proteins, and the columns of what
they include are counted, weighted as for a profile. Every --chunk queries have a file in --work; the same command
goes on from there.

The package's library is trained on two draws, the second one with --seed 54 --redundant 40.

Needs: Swiss-Prot, SCOPe. With the defaults half an hour on one core, the second draw 45 minutes.
Run:   python -m benchmarks.training.columns --proteins uniprot_sprot.fasta --domains scop40.fasta.xz --work FOLDER
           [--seed 53] [--redundant 0]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import swsearch
from benchmarks.statistics.sensitivity_measures import HALVES, halves, read_scope
from benchmarks.support.common import Records, arguments, numbered, read, residues
from benchmarks.support.timing import say
from swsearch.profiles.construction import observations_of

SIMILAR = 0.001
"""E-value up to which proteins are similar."""

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


def similar(queries: Records, subjects: Records, threads: int, identity: float = 0.0) -> list[list[int]]:
    """Return the places of the subjects that are similar to each query, with at least so many percent identity."""
    with swsearch.Database.from_records(numbered(subjects, "s")) as database:
        results = swsearch.search(
            queries, database, engine="cpu", threads=threads, evalue=SIMILAR, max_hits=10**6, statistics="published",
            min_identity=identity or None,
        )  # fmt: skip
        return [[int(hit.subject_id[1:]) for hit in result.hits] for result in results]


def unlike(drawn: Records, reserved: Records, threads: int, identity: float) -> tuple[Records, int]:
    """Return the proteins that are similar neither to reserved domains nor to an earlier one of these.

    The second is the number of those that are similar to reserved domains.
    """
    related = [bool(hits) for hits in similar(drawn, reserved, threads)]
    rest = [record for record, is_related in zip(drawn, related, strict=True) if not is_related]
    taken: set[int] = set()
    for place, hits in enumerate(similar(rest, rest, threads, identity)):
        if not taken.intersection(hits):
            taken.add(place)
    return [rest[place] for place in sorted(taken)], sum(related)


def count_columns(queries: Records, database: swsearch.Database, threads: int) -> dict[str, np.ndarray]:
    """Search once with each query, and return the columns of all, one query after the other.

    Some rows of each alignment, the query first, are kept: ``sizes`` has their number and that of the columns.
    """
    generator = np.random.default_rng(len(queries[0][1]))
    found = swsearch.search(
        queries, database, engine="cpu", threads=threads, max_hits=1, keep_profiles=True, inclusion_evalue=SIMILAR,
        max_included=1000, statistics="published",
    )  # fmt: skip
    parts, sizes = [], []
    for result in found:
        profile = result.next_profile
        if profile is None or profile.alignment is None:
            continue
        alignment = profile.alignment
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
    parser.add_argument("--proteins", type=Path, required=True, help="FASTA of Swiss-Prot")
    parser.add_argument("--domains", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--work", type=Path, required=True, help="folder of columns")
    parser.add_argument("--draw", type=int, default=12000, metavar="N", help="proteins, default %(default)s")
    parser.add_argument("--subjects", type=int, default=150_000, metavar="N", help="proteins, default %(default)s")
    parser.add_argument("--redundant", type=float, default=0.0, metavar="PERCENT", help="default %(default)g")
    parser.add_argument("--chunk", type=int, default=50, help="queries of a file, default %(default)s")
    parser.add_argument("--seed", type=int, default=53, help="of what is drawn, default %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="default %(default)s")
    return parser.parse_args()


def draw(proteins: Sequence[tuple[str, str]], options: argparse.Namespace) -> tuple[Records, Records]:
    """Return the proteins drawn as queries and those drawn as subjects."""
    subjects = random.Random(options.seed + 1).sample(proteins, min(options.subjects, len(proteins)))
    fitting = [record for record in proteins if SHORTEST <= len(record[1]) <= LONGEST]
    return random.Random(options.seed).sample(fitting, min(options.draw, len(fitting))), subjects


def main() -> None:
    options = read_options()
    options.work.mkdir(parents=True, exist_ok=True)
    drawn, subjects = draw(read(options.proteins), options)
    kept = options.work / "queries.txt"
    if not kept.exists():
        reserved = held_out(options.domains)
        queries, n_related = unlike(drawn, reserved, options.threads, options.redundant)
        say(f"{len(drawn):,} drawn, {n_related:,} similar to {len(reserved):,} domains, {len(queries):,} left")
        kept.write_text("".join(f"{name}\n" for name, _ in queries))
    names = set(kept.read_text().split())
    queries = [record for record in drawn if record[0] in names]
    say(f"{len(queries):,} queries, {residues(queries):,} residues; {len(subjects):,} subjects")
    with swsearch.Database.from_records(numbered(subjects, "s")) as database:
        for first in range(0, len(queries), options.chunk):
            path = options.work / f"columns{first:06d}.npz"
            if path.exists():
                continue
            columns = count_columns(queries[first : first + options.chunk], database, options.threads)
            with path.with_suffix(".part").open("wb") as stream:
                np.savez_compressed(stream, **columns)
            path.with_suffix(".part").rename(path)
            say(f"{path.name}: {len(columns['observations']):,} columns")


if __name__ == "__main__":
    main()
