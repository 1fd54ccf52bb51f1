"""Search by iteration with swsearch, and print every iteration's hits: what `iterated.py` runs as a contender.

Each iteration's search leaves the profiles of the next one (``keep_profiles``), as ``--save-profile`` does, so that
three iterations take three searches. Lines are iteration, query, subject and E-value, tab-separated.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import swsearch
from swsearch.pipeline.options import SearchOptions

MOST = 10**6
"""More hits than any query has."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", type=Path)
    parser.add_argument("database", type=Path)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--evalue", type=float, default=100.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--inclusion-evalue", type=float, default=SearchOptions.inclusion_evalue)
    parser.add_argument("--preset", default="default")
    options = parser.parse_args()
    asked: Any = options.queries
    for iteration in range(1, options.iterations + 1):
        found = list(
            swsearch.search(
                asked, options.database, evalue=options.evalue, max_hits=MOST, threads=options.threads,
                inclusion_evalue=options.inclusion_evalue, preset=options.preset, keep_profiles=True,
            )
        )  # fmt: skip
        for result in found:
            for hit in result.hits:
                print(iteration, result.query_id, hit.subject_id, f"{hit.evalue:.6g}", sep="\t")
        asked = [result.next_profile for result in found]
