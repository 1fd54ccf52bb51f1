"""Query-anchored alignments as text and from it."""

from __future__ import annotations

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.profiles.query_alignment import GAP, QueryAlignment

COLUMN_LETTERS = PROTEIN.decode_table.copy()
COLUMN_LETTERS[GAP] = ord("-")


def column_rows(alignment: QueryAlignment) -> list[str]:
    """Each sequence in the query's columns."""
    return [COLUMN_LETTERS[codes].tobytes().decode() for codes in alignment.columns]


def a3m_rows(alignment: QueryAlignment) -> list[str]:
    """Each sequence as A3M has it."""
    rows = [[*text, ""] for text in column_rows(alignment)]
    for row, column, begin, end in alignment.insertions.tolist():
        rows[row][column] = PROTEIN.decode(alignment.inserted[begin:end]).lower() + rows[row][column]
    return ["".join(row) for row in rows]


def alignment_from(*texts: str) -> QueryAlignment:
    """The alignment that A3M rows say; the n-th is of subject n, of which all is aligned."""
    columns, insertions, inserted = [], [], ""
    for row, text in enumerate(texts):
        at, codes = 0, []
        for letter in text:
            if letter.islower():
                if insertions and insertions[-1][:2] == [row, at]:
                    insertions[-1][3] += 1
                else:
                    insertions.append([row, at, len(inserted), len(inserted) + 1])
                inserted += letter
            else:
                codes.append(GAP if letter == "-" else PROTEIN.letters.index(letter))
                at += 1
        columns.append(codes)
    n = len(texts)
    return QueryAlignment(
        [f"s{k}" for k in range(n)],
        [f"subject {k}" for k in range(n)],
        np.array(columns, dtype=np.uint8),
        np.zeros(n, dtype=np.int64),
        np.array([sum(letter != "-" for letter in text) for text in texts], dtype=np.int64),
        np.array(insertions, dtype=np.int64).reshape(-1, 4),
        PROTEIN.encode(inserted),
        np.array([-1, *range(1, n)]),
        np.linspace(0, 1, n),
        np.array([0, *[1] * (n - 1)]),
    )
