"""What a search keeps in memory for each subject of its database: peak RSS of whole commands.

Runs `swsearch search` with one query, the 10 best hits with their alignments, against each database, and against one
of a single record: what is more than that is divided by the subjects. Some of it does not grow with them: chunks of
64 MiB, one in use and one ahead.

Needs: databases, such as one of a hundred million short records. A minute for each Gresidue.
Run:   python -m benchmarks.speed.memory DATABASE [DATABASE ...] [--queries Q.fasta] [--engine cpu]
           [--out benchmarks/results/memory.txt]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.speed.build import measure
from benchmarks.support.common import QUERIES, arguments, finish, heading, read, table, write
from swsearch.db import Database, build_database

MIB = 1 << 20


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("databases", type=Path, nargs="+", help="made by swsearch db build")
    parser.add_argument(
        "--queries", type=Path, default=QUERIES, help="FASTA; its first is taken; default %(default)s"
    )
    parser.add_argument("--engine", default="cpu", help="passed on to swsearch search, default %(default)s")
    options = parser.parse_args()
    (query,) = read(options.queries, 1)
    rows = []
    with tempfile.TemporaryDirectory(prefix="swsearch-memory-") as name:
        asked, alone = write(Path(name) / "query.fasta", [query]), Path(name) / "alone.h5"
        build_database(asked, alone)
        base = 0
        for path in (alone, *options.databases):
            with Database.open(path) as database:
                subjects, residues = database.n_subjects, database.n_residues
            line = ["search", asked, path, "--max-hits", 10, "--engine", options.engine, "--quiet"]
            peak = measure([sys.executable, "-m", "swsearch", *map(str, line)]).peak_bytes
            base = base or peak
            above = f"{(peak - base) / subjects:.1f}" if path is not alone else ""
            rows.append([f"{subjects:,}", f"{residues:,}", f"{peak / MIB:,.0f}", above])
    columns = ["subjects", "residues", "peak RSS MiB", "bytes per subject above the first"]
    what = f"one query of {len(query[1]):,} residues, --max-hits 10 --engine {options.engine}"
    finish([*heading(__file__, ["numpy"]), what, "", *table(columns, rows)], options.out)


if __name__ == "__main__":
    main()
