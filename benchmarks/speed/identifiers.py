"""What a million identifiers cost: read from their list, found in a database, and turned into who may be a hit.

Makes databases of records with UniProt's headers (105 bytes, three names each) and 30 residues, as many as
`--records` asks for, and lists of a million accessions, of which as many as can be are there. Times are those of a
process that has the database open: the least and the most of `--runs`. Then whole commands: all entries as FASTA, and
a list of half of them.

Needs: 300 bytes of free disk for each record that is made.
Run:   python -m benchmarks.speed.identifiers [--records 575K 5M] [--runs 5]
                [--out benchmarks/results/identifiers.txt]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.speed.build import measure, number
from benchmarks.support.common import arguments, finish, heading, table
from swsearch.db import Database, build_database
from swsearch.pipeline.filters import HitFilters, allowed_subjects
from swsearch.pipeline.table.values import read_identifiers

ASKED = 1_000_000
"""Identifiers of a list."""

RESIDUES_MADE = 30
"""Residues of a record."""


def accession(place: int) -> str:
    """Return the accession of a made record; records that are not made have some too."""
    return f"Q{place:05X}" if place < 1 << 20 else f"A0A{place:07X}"


def make(path: Path, n: int) -> None:
    """Write records with headers like UniProt's."""
    draw = np.random.default_rng(7)
    letters = draw.choice(np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", dtype=np.uint8), 1 << 16).tobytes().decode()
    kinds = ("Insulin-like growth factor I", "ATP synthase subunit beta, chloroplastic", "Uncharacterized protein")
    with path.open("w", encoding="ascii") as file:
        for place in range(n):
            name, at = accession(place), place * 7 % ((1 << 16) - RESIDUES_MADE)
            file.write(
                f">sp|{name}|{name[-5:]}_HUMAN {kinds[place % 3]} OS=Homo sapiens OX=9606 GN=ABC{place} PE=2 SV=1\n"
                f"{letters[at : at + RESIDUES_MADE]}\n"
            )


def timed(work: Callable[[], object], runs: int) -> str:
    """Return the least and the most seconds that some work takes."""
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return f"{min(seconds):.2f} to {max(seconds):.2f}"


def row_of(folder: Path, n: int, runs: int) -> tuple[object, ...]:
    """Measure one database."""
    source, path, listed = folder / "made.fasta", folder / "made.h5", folder / "ids.txt"
    make(source, n)
    build_database(source, path)
    places = np.arange(ASKED)
    np.random.default_rng(8).shuffle(places)
    listed.write_text("".join(f"{accession(place)}\n" for place in places.tolist()), encoding="ascii")
    names = read_identifiers(listed, "include_ids")
    filters = HitFilters(include_ids=names, ignore_missing_ids=True)
    with Database.open(path) as database:
        asked, _ = database.places_of(names)
        assert len(asked) == min(n, ASKED)
        spent = [
            timed(lambda: read_identifiers(listed, "include_ids"), runs),
            timed(lambda: database.places_of(names), runs),
            timed(lambda: allowed_subjects(database, filters), runs),
        ]
        n_bytes = Path(path).stat().st_size
    fetch = [sys.executable, "-m", "swsearch", "db", "fetch", str(path), "-o", str(folder / "out.fasta")]
    whole = measure([*fetch, "--all"]).seconds
    source.write_text("".join(f"{accession(place)}\n" for place in range(0, n, 2)), encoding="ascii")
    half = measure([*fetch, "--ids", str(source)]).seconds
    return f"{n:,}", f"{n_bytes / 1e6:,.0f}", *spent, f"{whole:.2f}", f"{half:.2f}"


def main() -> None:
    """Print a row for each size."""
    parser = arguments(__doc__ or "", files=False)
    parser.add_argument("--records", type=number, nargs="+", default=[575_000, 5_000_000], metavar="N")
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    options = parser.parse_args()
    rows = []
    for n in options.records:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row_of(Path(folder), n, options.runs))
    columns = (
        "records", "database MB", "read the list, s", "find, s", "find and filter, s", "fetch --all, s",
        "fetch half, s",
    )  # fmt: skip
    finish([*heading(__file__, ["numpy"]), f"{ASKED:,} accessions", "", *table(columns, rows)], options.out)


if __name__ == "__main__":
    main()
