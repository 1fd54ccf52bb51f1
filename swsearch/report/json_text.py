"""JSON made of columns: the text of many objects of one kind at a time, as `json` has it, in ASCII without blanks.

A column is a sequence of integers, or of texts that are JSON already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii as string
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import FloatArray

_HITS = '"hits":[]'
"""Where hits belong in the text of an object without them. No string holds it: quotes are escaped there."""


def encode(value: object) -> str:
    """Return any value as JSON."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def strings(texts: Iterable[str]) -> list[str]:
    """Return texts as JSON."""
    return list(map(string, texts))


def printable(texts: Iterable[str]) -> list[str]:
    """Return printable ASCII as JSON, such as rows of alignments, which have a backslash for a frameshift."""
    return [string(text) if "\\" in text or '"' in text else f'"{text}"' for text in texts]


def floats(values: FloatArray) -> list[str]:
    """Return numbers, shape (n,), as JSON; null for NaN and infinity."""
    finite = np.isfinite(values)
    if not finite.any():
        return ["null"] * len(values)
    found = list(map(repr, values.tolist()))
    for place in np.flatnonzero(~finite).tolist():
        found[place] = "null"
    return found


def lists(of_each: Iterable[Iterable[str]]) -> list[str]:
    """Return lists of JSON as JSON."""
    return [f"[{','.join(each)}]" for each in of_each]


def objects(
    columns: Mapping[str, Sequence[str | int]], absent: Mapping[str, npt.NDArray[np.bool_]] | None = None
) -> list[str]:
    """Return an object for each row of some columns.

    Parameters
    ----------
    columns : dict
        The values of each key.
    absent : dict of str to ndarray, shape (n,), bool, optional
        Which rows do not have a key.
    """
    pieces = {key: f",{string(key).replace('%', '%%')}:%s" for key in columns}
    values = dict(columns)
    for key, missing in (absent or {}).items():
        if missing.all():
            del pieces[key], values[key]
        elif missing.any():
            pieces[key] = "%s"
            of_key = zip(columns[key], missing.tolist(), strict=True)
            values[key] = ["" if is_missing else f",{string(key)}:{value}" for value, is_missing in of_key]
    template = "{" + "".join(pieces.values())[1:] + "}"  # the first key is never absent
    return [template % row for row in zip(*values.values(), strict=True)]


def with_hits(value: Mapping[str, Any], hits: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the parts of an object whose key ``hits``, somewhere in it, has an empty list, with hits in that list.

    Parameters
    ----------
    value : dict
        The object.
    hits : iterable of sequence of str
        Objects as JSON, some at a time, none of them empty.
    """
    before, found, after = encode(value).partition(_HITS)
    assert found, "hits belong in it"
    yield before + _HITS[:-1]
    comma = ""
    for some in hits:
        yield comma + ",".join(some)
        comma = ","
    yield "]" + after
