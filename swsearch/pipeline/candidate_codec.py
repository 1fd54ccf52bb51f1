"""Selections as bytes and back, the same to the bit: what a worker returns, and the lower part of a state's codec.

Numbers are arrays, one after the other for all queries; what else there is, is JSON. Nothing is pickled: bytes that
come from elsewhere can at worst be refused. Published statistics are not written, since the options say which they
are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swsearch.pipeline.number_arrays import (
    MAX_MAGNITUDE,
    ArrayReader,
    ArrayWriter,
    Facts,
    Unreadable,
    joined,
    parted,
    require,
)
from swsearch.pipeline.ranking import Ranked
from swsearch.pipeline.selection import Selection
from swsearch.statistics.distributions import MOST_SHAPE, Distribution, Gumbel, PearsonThree
from swsearch.statistics.fitted import Fit, FittedStatistics, PairNulls
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics
from swsearch.statistics.observed import ScoreCounts

PUBLISHED = "published"
"""Stands for the statistics that the options name."""

WRONG = (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError)
"""What facts and arrays of something else raise as they are put together."""


def packed(selections: Sequence[Selection]) -> bytes:
    """Return selections of one search as bytes, for `unpacked`."""
    writer = ArrayWriter()
    facts = [add_selection(each, writer) for each in selections]
    return joined(facts, writer.arrays())


def unpacked(data: bytes, published: KarlinAltschul | None, n_places: int) -> list[Selection]:
    """Return the selections that bytes hold.

    Parameters
    ----------
    data : bytes
        What `packed` returned.
    published : KarlinAltschul or None
        The statistics that the options name.
    n_places : int
        Places that are scored.

    Raises
    ------
    Unreadable
        If they hold something else, or subjects that the database lacks.
    """
    facts, arrays = parted(data)
    try:
        reader = ArrayReader(arrays)
        selections = [take_selection(each, reader, published, n_places) for each in facts]
        reader.check_empty()
    except Unreadable:
        raise
    except WRONG as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error
    return selections


def add_selection(selection: Selection, writer: ArrayWriter) -> Facts:
    """Give a selection's numbers to a writer, and return the rest; alignments are left out."""
    candidates, nulls, counted = selection.candidates, selection.nulls, selection.distribution
    for ranked in (candidates, selection.included):
        if ranked is not None:
            writer.add(scores=ranked.scores, subjects=ranked.subjects)
            if ranked.evalues is not None:
                writer.add(evalues=ranked.evalues)
    if nulls is not None:
        if nulls.statistics != selection.statistics:
            raise ValueError("selection: expected nulls that belong to its statistics")
        writer.add(lengths=nulls.lengths, levels=nulls.levels, bounds=nulls.bounds)
    if counted is not None:
        writer.add(counted=counted.scores, counts=counted.counts)
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


def take_selection(facts: Facts, reader: ArrayReader, published: KarlinAltschul | None, n_places: int) -> Selection:
    """Return the selection of facts and of the next numbers of a reader; its places are below ``n_places``."""
    ranked = _ranked(reader, n_places, facts["candidates"], facts["rated"])
    included = _ranked(reader, n_places, *facts["included"]) if "included" in facts else None
    statistics = _statistics(facts["statistics"], published)
    nulls, counted = None, None
    if (n_nulls := facts["nulls"]) is not None:
        if not isinstance(statistics, FittedStatistics):
            raise Unreadable("it has nulls without a fit")
        lengths = reader.whole("lengths", n_nulls, -MAX_MAGNITUDE + 1, MAX_MAGNITUDE)
        levels, bounds = reader.real("levels", n_nulls, is_bounded=True), reader.real("bounds", n_nulls)
        nulls = PairNulls(statistics, lengths, levels, bounds)
    if (n_counted := facts["counted"]) is not None:
        counted = ScoreCounts(reader.whole("counted", n_counted), reader.whole("counts", n_counted))
    limit, reason, doubt = (facts[name] for name in ("limit", "reason", "doubt"))
    require(type(limit) is int and isinstance(reason, str) and isinstance(doubt, str), "it has invalid notes")
    return Selection(ranked, limit, statistics, reason, counted, nulls, doubt, included)


def _ranked(reader: ArrayReader, n_places: int, n: int, has_evalues: bool) -> Ranked:
    """Return the next subjects in order, which are in the database."""
    scores = reader.whole("scores", n, -MAX_MAGNITUDE + 1, MAX_MAGNITUDE)
    subjects = reader.whole("subjects", n)
    good = not n or 0 <= int(subjects.min()) <= int(subjects.max()) < n_places
    require(good, "it names subjects that the database lacks")
    return Ranked(scores, subjects, reader.real("evalues", n) if has_evalues else None)


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
    for name, values in (("means", means), ("variances", variances)):
        require(all(abs(value) < MAX_MAGNITUDE for value in values), f"{name} has numbers beyond {MAX_MAGNITUDE}")
    return FittedStatistics(fit, facts["query_length"], lengths, means, variances, distribution)


def _exact(values: Iterable[float]) -> list[str]:
    """Return numbers as texts that have every bit."""
    return [float(value).hex() for value in values]
