"""Selections as bytes and back, the same to the bit: what a checkpoint keeps of a group of queries.

Numbers are arrays of numpy's own format, one after the other for all queries of a group; what else there is, is JSON.
Nothing is pickled: bytes that come from elsewhere can at worst be refused. Published statistics are not kept, since
the options say which they are.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.pipeline.ranking import Ranked
from swsearch.pipeline.selection import Selection
from swsearch.statistics.distributions import MOST_SHAPE, Distribution, Gumbel, PearsonThree
from swsearch.statistics.fitted import Fit, FittedStatistics, PairNulls
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics
from swsearch.statistics.observed import ScoreCounts

WHOLE = ("scores", "subjects", "lengths", "counted", "counts")
"""Arrays of whole numbers, shape (n,), int64 but for the file, which has them as narrow as they fit."""

REAL = ("evalues", "levels", "bounds")
"""Arrays of float64, shape (n,)."""

MAX_MAGNITUDE = 1 << 31
"""No score, length or variance comes near it; arithmetic with numbers below it stays finite."""

PUBLISHED = "published"
"""Stands for the statistics that the options name."""

Facts = dict[str, Any]

Arrays = dict[str, npt.NDArray[Any]]
"""Numbers by name."""


class Unreadable(ValueError):  # noqa: N818  # the caller says what is wrong where
    """Bytes that are no selections, or those of another database."""


def packed(selections: Sequence[Selection]) -> bytes:
    """Return selections as bytes.

    Parameters
    ----------
    selections : sequence of Selection
        Of one search.

    Returns
    -------
    bytes
        For `unpacked`.
    """
    facts, arrays = taken_apart(selections)
    text = np.frombuffer(json.dumps(facts).encode("ascii"), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez(stream, facts=text, allow_pickle=False, **arrays)
    return stream.getvalue()


def taken_apart(selections: Sequence[Selection]) -> tuple[list[Facts], Arrays]:
    """Return what JSON can hold of selections, and their numbers: arrays by the names in `WHOLE` and `REAL`."""
    arrays: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in WHOLE + REAL}
    facts = [_facts(selection, arrays) for selection in selections]
    found = {name: np.concatenate([np.empty(0, _kind(name)), *parts]) for name, parts in arrays.items()}
    return facts, {name: narrowed(found[name]) if name in WHOLE else found[name] for name in WHOLE + REAL}


def unpacked(data: bytes, published: KarlinAltschul | None, n_subjects: int) -> list[Selection]:
    """Return the selections that bytes hold.

    Parameters
    ----------
    data : bytes
        What `packed` returned.
    published : KarlinAltschul or None
        The statistics that the options name.
    n_subjects : int
        Of the database.

    Raises
    ------
    Unreadable
        If they hold something else, or subjects that the database lacks.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            facts = json.loads(file["facts"].tobytes())
            arrays = {name: file[name] for name in WHOLE + REAL}
    except (ValueError, TypeError, KeyError, IndexError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error
    return put_together(facts, arrays, published, n_subjects)


def put_together(facts: Any, arrays: Arrays, published: KarlinAltschul | None, n_subjects: int) -> list[Selection]:
    """Return the selections that `taken_apart` took apart; see `unpacked`, which raises the same."""
    try:
        taken = _Taken({name: _checked(name, arrays[name]) for name in WHOLE + REAL}, n_subjects)
        selections = [_selection(each, taken, published) for each in facts]
        taken.check_empty()
    except Unreadable:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error
    return selections


def _kind(name: str) -> npt.DTypeLike:
    return np.int64 if name in WHOLE else np.float64


def narrowed(values: IntArray) -> npt.NDArray[np.integer]:
    """Return whole numbers, shape (n,), as the narrowest type that holds them all."""
    if not len(values):
        return values.astype(np.int8)
    kind = np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
    return values.astype(kind) if kind.kind in "iu" else values


def _checked(name: str, found: npt.NDArray[Any]) -> npt.NDArray[Any]:
    fits = found.ndim == 1 and (found.dtype.kind in "iu" if name in WHOLE else found.dtype == np.float64)
    if not fits:
        raise Unreadable(f"{name} has type {found.dtype} and shape {found.shape}")
    values = found.astype(_kind(name))
    if name in ("scores", "lengths", "levels"):
        _check_size(name, values)
    return values


def _check_size(name: str, values: npt.ArrayLike) -> None:
    """Raise unless numbers can be scores, lengths, means or variances; NaN cannot."""
    found = np.asarray(values)
    if not ((found > -MAX_MAGNITUDE) & (found < MAX_MAGNITUDE)).all():
        raise Unreadable(f"{name} has numbers beyond {MAX_MAGNITUDE}")


class _Taken:
    """Arrays of a group, from which each query takes its part."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]], n_subjects: int) -> None:
        self._arrays, self._n_subjects = arrays, n_subjects
        self._places = dict.fromkeys(arrays, 0)

    def take(self, name: str, n: int) -> npt.NDArray[Any]:
        """Return the next of an array."""
        at = self._places[name]
        if not 0 <= n <= len(self._arrays[name]) - at:
            raise Unreadable(f"{name} has no {n} values more")
        self._places[name] = at + n
        return self._arrays[name][at : at + n].copy()  # a part would keep the whole

    def subjects(self, n: int) -> IntArray:
        """Return the next places in the input, which are in the database."""
        found = self.take("subjects", n)
        if n and not 0 <= found.min() <= found.max() < self._n_subjects:
            raise Unreadable("it names subjects that the database lacks")
        return found

    def ranked(self, n: int, has_evalues: bool) -> Ranked:
        """Return the next subjects in order."""
        scores, subjects = self.take("scores", n), self.subjects(n)
        return Ranked(scores, subjects, self.take("evalues", n) if has_evalues else None)

    def check_empty(self) -> None:
        """Raise unless all was taken."""
        left = [name for name, place in self._places.items() if place != len(self._arrays[name])]
        if left:
            raise Unreadable(f"{left[0]} has more values than queries have")


def _facts(selection: Selection, arrays: dict[str, list[npt.NDArray[Any]]]) -> Facts:
    """Put a selection's numbers into the arrays; return the rest."""
    candidates, nulls, counted = selection.candidates, selection.nulls, selection.distribution

    def add(**parts: npt.NDArray[Any]) -> None:
        for name, part in parts.items():
            arrays[name].append(part)

    for ranked in (candidates, selection.included):
        if ranked is not None:
            add(scores=ranked.scores, subjects=ranked.subjects)
            if ranked.evalues is not None:
                add(evalues=ranked.evalues)
    if nulls is not None:
        if nulls.statistics != selection.statistics:
            raise ValueError("selection: expected nulls that belong to its statistics")
        add(lengths=nulls.lengths, levels=nulls.levels, bounds=nulls.bounds)
    if counted is not None:
        add(counted=counted.scores, counts=counted.counts)
    included = selection.included
    more = {} if included is None else {"included": [len(included), included.evalues is not None]}
    return {
        "candidates": len(candidates),
        "rated": candidates.evalues is not None,
        **more,
        "nulls": None if nulls is None else len(nulls),
        "counted": None if counted is None else len(counted.scores),
        "limit": selection.limit,
        "statistics": _facts_of(selection.statistics),
        "reason": selection.reason,
        "doubt": selection.doubt,
    }


def _selection(facts: Facts, taken: _Taken, published: KarlinAltschul | None) -> Selection:
    ranked = taken.ranked(facts["candidates"], facts["rated"])
    included = taken.ranked(*facts["included"]) if "included" in facts else None
    statistics = _statistics(facts["statistics"], published)
    nulls, counted = None, None
    if (n_nulls := facts["nulls"]) is not None:
        if not isinstance(statistics, FittedStatistics):
            raise Unreadable("it has nulls without a fit")
        nulls = PairNulls(statistics, *(taken.take(name, n_nulls) for name in ("lengths", "levels", "bounds")))
    if (n_counted := facts["counted"]) is not None:
        counted = ScoreCounts(taken.take("counted", n_counted), taken.take("counts", n_counted))
    return Selection(ranked, facts["limit"], statistics, facts["reason"], counted, nulls, facts["doubt"], included)


def _facts_of(statistics: Statistics | None) -> Facts | str | None:
    if statistics is None:
        return None
    if not isinstance(statistics, FittedStatistics):
        return PUBLISHED
    fit = statistics.fit
    return {
        "fit": [fit.mode, fit.gap_extend, fit.n_subjects, fit.residues, fit.frames],
        "query_length": statistics.query_length,
        "lengths": statistics.lengths,
        "means": _exact(statistics.means),
        "variances": _exact(statistics.variances),
        "shape": getattr(statistics.distribution, "shape", None),
    }


def _statistics(facts: Facts | str | None, published: KarlinAltschul | None) -> Statistics | None:
    if facts is None:
        return None
    if isinstance(facts, str):
        if facts != PUBLISHED or published is None:
            raise Unreadable("it has statistics that were not asked for")
        return published
    shape = facts["shape"]
    distribution: Distribution = Gumbel() if shape is None else PearsonThree(int(shape))
    means, variances = (tuple(map(float.fromhex, facts[name])) for name in ("means", "variances"))
    fit, lengths = Fit(*facts["fit"]), tuple(facts["lengths"])
    if not 0 < len(lengths) == len(means) == len(variances) or min(variances) <= 0:
        raise Unreadable("it has a fit without lengths, means or variances")
    if isinstance(distribution, PearsonThree) and not 1 <= distribution.shape <= MOST_SHAPE:
        raise Unreadable(f"it has a distribution of shape {distribution.shape}")
    _check_size("means", means)
    _check_size("variances", variances)
    return FittedStatistics(fit, facts["query_length"], lengths, means, variances, distribution)


def _exact(values: Iterable[float]) -> list[str]:
    """Return numbers as texts that have every bit."""
    return [float(value).hex() for value in values]
