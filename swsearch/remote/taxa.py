"""The taxa of subjects on their way from a server: numbers in arrays, and each taxon once, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from swsearch.db.taxonomy import Taxa, Taxon
from swsearch.pipeline.number_arrays import narrowed
from swsearch.remote.frames import NumberArray


def told_taxa(taxa: Sequence[Taxa]) -> dict[str, NumberArray]:
    """Return the taxa of subjects: how many each has, shape (n,), where each stands among all, and all, as JSON."""
    places = {taxon: place for place, taxon in enumerate(dict.fromkeys(each for of_one in taxa for each in of_one))}
    text = json.dumps([list(taxon) for taxon in places]).encode("ascii")
    return {
        "n_taxa": narrowed(np.array([len(of_one) for of_one in taxa], dtype=np.int64)),
        "taxa": narrowed(np.array([places[each] for of_one in taxa for each in of_one], dtype=np.int64)),
        "taxon_names": np.frombuffer(text, dtype=np.uint8),
    }


def taxa_told(arrays: Mapping[str, NumberArray], n: int) -> list[Taxa] | None:
    """Return the taxa of n subjects, from arrays of shape (m,); None where the database knows none.

    There are none where what came says none.
    """
    if "n_taxa" not in arrays:
        return None
    try:
        counts, places = (arrays[name].astype(np.int64) for name in ("n_taxa", "taxa"))
        known = [Taxon(*each) for each in json.loads(arrays["taxon_names"].tobytes())]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []
    good = all(type(each.taxid) is int and all(isinstance(text, str) for text in each[1:]) for each in known)
    good = good and len(counts) == n and bool((counts >= 0).all()) and int(counts.sum()) == len(places)
    if not good or not ((places >= 0) & (places < len(known))).all():
        return []
    found, ends = places.tolist(), [0, *np.cumsum(counts).tolist()]
    return [tuple(known[place] for place in found[a:b]) for a, b in pairwise(ends)]
