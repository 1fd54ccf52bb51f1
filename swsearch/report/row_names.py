"""What the rows of an alignment are called: names of one word that are unique in their file, and titles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from swsearch.alphabet import Alphabet, ByteArray
from swsearch.profiles.alignment import GAP, QueryAlignment
from swsearch.report import headers, numbers

_MERGED = "\x01"
"""What NCBI puts between the headers of identical sequences that it merged into one record."""

_NOT_FIRST = re.compile(r"^[#/>]+")
"""What begins a comment, the end of an alignment or a header where a name is meant."""


def letters_of(alphabet: Alphabet) -> ByteArray:
    """Return the letter of each code in columns, shape (256,), uint8: ``-`` of `GAP`, and X of a stop.

    Programs that read alignments take ``*`` for the end of a sequence, or for no letter at all.
    """
    letters = alphabet.decode_table.copy()
    letters[GAP] = ord("-")
    letters[letters == ord("*")] = ord("X")
    return letters


def row_names(alignment: QueryAlignment) -> list[str]:
    """Return a name for each sequence: ``P12345/10-80``, its aligned part counted from 1; the query has no part.

    Blanks and what would not be read as a name become ``_``. A name that is taken gets ``#2`` at its end, ``#3`` ...
    """
    first = alignment.starts + 1
    spans = zip(first.tolist(), alignment.ends.tolist(), strict=True)
    identifiers = _words(alignment.identifiers)
    names = [f"{name}/{begin}-{end}" for name, (begin, end) in zip(identifiers, spans, strict=True)]
    names[:1] = identifiers[:1]
    return names if len(set(names)) == len(names) else _unique(names)


def _words(identifiers: Sequence[str]) -> list[str]:
    words = headers.printed_identifiers(identifiers)
    return [_NOT_FIRST.sub("_", "_".join(word.split())) for word in words]


def _unique(names: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    taken = set(names)
    unique = []
    for name in names:
        seen[name] += 1
        shown = name
        if seen[name] > 1:
            while (shown := f"{name}#{seen[name]}") in taken:
                seen[name] += 1
            taken.add(shown)
        unique.append(shown)
    return unique


def descriptions_of(alignment: QueryAlignment) -> list[str]:
    """Return a line of text for each sequence, empty where it has none; of merged headers the first."""
    texts = [text.partition(_MERGED)[0] for text in alignment.descriptions]
    return [headers.one_line(text).strip() for text in texts]


def evalues_of(alignment: QueryAlignment) -> list[str]:
    """Return the E-value of each sequence as BLAST's tables print it; empty of the query and where there is none."""
    texts = numbers.evalue_texts(alignment.evalues)
    known = ~np.isnan(alignment.evalues)
    known[:1] = False
    return [text if is_known else "" for text, is_known in zip(texts, known.tolist(), strict=True)]


def fasta_headers(alignment: QueryAlignment) -> list[str]:
    """Return the header line of each sequence without its end: ``>P12345/10-80 E=2e-30 the description``."""
    rows = zip(row_names(alignment), evalues_of(alignment), descriptions_of(alignment), strict=True)
    return [f">{name}{f' E={evalue}' if evalue else ''}{f' {text}' if text else ''}" for name, evalue, text in rows]
