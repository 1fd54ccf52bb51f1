"""Search a FASTA file and read the hits into pandas.

Run: python examples/search_to_pandas.py
"""

from __future__ import annotations

from pathlib import Path

import pandas

import swsearch

DATA = Path(__file__).parent / "data"


def main() -> pandas.DataFrame:
    results = swsearch.search(DATA / "queries.fasta", DATA / "swissprot_sample.fasta.gz", max_hits=3)
    table = pandas.concat([result.to_pandas() for result in results], ignore_index=True)
    table["percent_identity"] = 100 * table["identities"] / table["alignment_length"]
    columns = ["query_id", "subject_id", "score", "bit_score", "evalue", "percent_identity"]
    print(table[columns].to_string(index=False, float_format="{:.3g}".format))
    return table


if __name__ == "__main__":
    main()
