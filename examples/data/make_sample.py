"""Make the example data from that of MMseqs2: its Swiss-Prot entries, and five human proteins among them as queries.

Run: python make_sample.py DB.fasta.gz (see README.md beside this file for where it is from).
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from Bio import SeqIO

QUERIES = ["CP17A_HUMAN", "EF1A2_HUMAN", "KPCL_HUMAN", "TEST_HUMAN", "TBA4B_HUMAN"]
"""Names of the queries' entries."""


def main(fasta: str) -> None:
    folder = Path(__file__).parent
    entries = {}
    with gzip.open(fasta, "rt") as file:
        for record in SeqIO.parse(file, "fasta"):
            if record.id.startswith("sp|"):
                record.description = record.description.removesuffix(" Split=0")  # MMseqs2's own word
                entries[record.id.rsplit("|", 1)[1]] = record.format("fasta")
    packed = gzip.compress("".join(entries.values()).encode(), compresslevel=9, mtime=0)
    (folder / "swissprot_sample.fasta.gz").write_bytes(packed)
    (folder / "queries.fasta").write_text("".join(entries[name] for name in QUERIES))
    print(f"{len(entries)} subjects, {len(packed)} bytes compressed, {len(QUERIES)} queries")


if __name__ == "__main__":
    main(sys.argv[1])
