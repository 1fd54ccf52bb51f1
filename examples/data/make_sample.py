"""Make the example data of a Swiss-Prot FASTA file: five queries, and a sample that holds some of their relatives.

The sample is every 150th entry, and for each query every third of the 90 best subjects of the whole file,
in the file's order. Run: python make_sample.py swissprot.fasta (see README.md beside this file for where it is from).
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import swsearch

QUERIES = {
    "P01308": "insulin, human",
    "P69905": "hemoglobin subunit alpha, human",
    "P61626": "lysozyme C, human",
    "P00918": "carbonic anhydrase 2, human",
    "P04637": "cellular tumor antigen p53, human",
}
EVERY, BEST, EVERY_BEST = 150, 90, 3


def entry(header: str, letters: str) -> str:
    lines = [letters[start : start + 60] for start in range(0, len(letters), 60)]
    return "\n".join([f">{header}", *lines]) + "\n"


def main(fasta: str) -> None:
    folder = Path(__file__).parent
    database = swsearch.Database.from_fasta([fasta])
    places = {identifier: database.find(identifier)[0] for identifier in QUERIES}
    queries = [(identifier, database.sequence(place)) for identifier, place in places.items()]
    chosen = set(range(0, database.n_subjects, EVERY))
    for result in swsearch.search(queries, database, max_hits=BEST, evalue=1e-3):
        chosen.update(hit.subject_index for hit in result.hits[::EVERY_BEST])
    text = "".join(entry(database.header(place).decode(), database.sequence(place)) for place in sorted(chosen))
    packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    (folder / "swissprot_sample.fasta.gz").write_bytes(packed)
    (folder / "queries.fasta").write_text(
        "".join(entry(f"{identifier} {QUERIES[identifier]}", letters) for identifier, letters in queries)
    )
    print(f"{len(chosen)} subjects, {len(packed)} bytes compressed, {len(queries)} queries")


if __name__ == "__main__":
    main(sys.argv[1])
