"""Screen a library of peptides against a set of proteins: the whole score matrix, no threshold, no statistics.

Which protein is each of these peptides cut from? A peptide's score against itself is the most it can reach, so
the share of it that a protein reaches says how much of the peptide it holds. Trypsin's active site is like that of
testisin, a relative of trypsin. Hemorphin-7 is cut from hemoglobin beta, which is not among these proteins.

Run: python examples/screen_peptides.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import swsearch

DATA = Path(__file__).parent / "data"

PEPTIDES = [
    ("PKC_eta_pseudosubstrate", "TRKRQRAMRRRVHQIN"),
    ("EF1A_GTP_binding", "GHVDSGKSTTTGHLIYKC"),
    ("CYP17A1_heme_binding", "FGAGPRSCIG"),
    ("trypsin_active_site", "DSCQGDSGGP"),
    ("hemorphin_7", "YPWTQRF"),
]


def main() -> np.ndarray:
    scoring = swsearch.Scoring("PAM30", gap_open=9, gap_extend=1)  # what blastp takes for short queries
    with swsearch.Database.from_fasta([DATA / "queries.fasta"]) as proteins:
        scores = swsearch.score(PEPTIDES, proteins, scoring=scoring)
        best = np.diagonal(swsearch.score(PEPTIDES, PEPTIDES, scoring=scoring))
        share = scores / best[:, None]
        names = [proteins.identifier(k).rsplit("|")[-1] for k in range(proteins.n_subjects)]
        print(f"{'':24}" + "".join(f"{name:>13}" for name in names))
        for (name, _), row in zip(PEPTIDES, share, strict=True):
            print(f"{name:24}" + "".join(f"{value:13.0%}" for value in row))
    return share


if __name__ == "__main__":
    main()
