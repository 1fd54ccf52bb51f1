"""Screen a library of peptides against a set of proteins: the whole score matrix, no threshold, no statistics.

Which protein is each of these peptides cut from? A peptide's score against itself is the most it can reach, so
the share of it that a protein reaches says how much of the peptide it holds. (Hemorphin-7 is cut from hemoglobin
beta, which is not among these proteins.)

Run: python examples/screen_peptides.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import swsearch

DATA = Path(__file__).parent / "data"

PEPTIDES = [
    ("insulin_B_chain", "FVNQHLCGSHLVEALYLVCGERGFFYTPKT"),
    ("insulin_A_chain", "GIVEQCCTSICSLYQLENYCN"),
    ("insulin_C_peptide", "EAEDLQVGQVELGGGPGAGSLQPLALEGSLQ"),
    ("hemorphin_7", "YPWTQRF"),
    ("p53_transactivation", "ETFSDLWKLLPENN"),
]


def main() -> np.ndarray:
    scoring = swsearch.Scoring("PAM30", gap_open=9, gap_extend=1)  # what blastp takes for short queries
    with swsearch.Database.from_fasta([DATA / "queries.fasta"]) as proteins:
        scores = swsearch.score(PEPTIDES, proteins, scoring=scoring)
        best = np.diagonal(swsearch.score(PEPTIDES, PEPTIDES, scoring=scoring))
        share = scores / best[:, None]
        print(f"{'':22}" + "".join(f"{proteins.identifier(k):>9}" for k in range(proteins.n_subjects)))
        for (name, _), row in zip(PEPTIDES, share, strict=True):
            print(f"{name:22}" + "".join(f"{value:9.0%}" for value in row))
    return share


if __name__ == "__main__":
    main()
