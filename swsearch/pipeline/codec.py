"""Encoding of query states for checkpoints and for transfers between workers.

Decoding restores every bit. A state holds its selection and its history; for DNA subjects also the loci. Profiles
are not stored, but the alignments that they are built from. Input bytes may come from anywhere: the format holds
only JSON and arrays of numbers, decoding checks them all, and it allocates no more memory than it received bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from swsearch.alignment_table import ALIGNMENT_COLUMNS, AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.blocks import FloatArray, IntArray
from swsearch.db.dna_segment import FramePieces
from swsearch.errors import SwsearchError
from swsearch.frameshift_alignment import NUCLEOTIDES_OF
from swsearch.inputs import Query
from swsearch.pipeline.batch import Batch, History, QueryState, search_iteration
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.iterate import ProfileGrower
from swsearch.pipeline.loci import Loci, LocusSubjects
from swsearch.pipeline.ranking import QueryCandidates, RankedSubjects
from swsearch.pipeline.subjects import SubjectReader, Subjects
from swsearch.pipeline.windows import FrameWindows
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.results import IterationStep
from swsearch.statistics.distributions import MAX_SHAPE, Distribution, Gumbel, PearsonThree
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics
from swsearch.statistics.null_model import FitSettings, FittedStatistics, PairNullModels
from swsearch.statistics.score_distribution import ScoreCounts
from swsearch.translation.genetic_codes import CODON, FRAME_NUMBERS

NUMBERS = ("<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f8")
"""Types of numbers in arrays."""

MAX_MAGNITUDE = 1 << 31
"""No score, length or variance comes near it; arithmetic with numbers below it stays finite."""

NumberArray = npt.NDArray[Any]

JsonFields = dict[str, Any]

Arrays = dict[str, NumberArray]
"""Numbers by name, each of shape (n,)."""

_SIZE = struct.Struct("<I")


class CorruptDataError(ValueError):  # the caller says what is wrong where
    """Bytes that are damaged, or from another search."""


def require(is_good: Any, what: str) -> None:
    """Raise `CorruptDataError` with a reason unless a condition holds."""
    if not is_good:
        raise CorruptDataError(what)


def narrowest_integers(values: IntArray) -> npt.NDArray[np.integer]:
    """Return whole numbers, shape (n,), as the narrowest type that holds them all."""
    if not len(values):
        return values.astype(np.int8)
    kind = np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
    return values.astype(kind) if kind.kind in "iu" else values


def pack(facts: Any, arrays: Mapping[str, NumberArray]) -> bytes:
    """Return what JSON can hold, and arrays, each of shape (n,), as bytes."""
    stored = {name: each.astype(each.dtype.newbyteorder("<"), copy=False) for name, each in arrays.items()}
    layout = [[name, _type_of(values), len(values)] for name, values in stored.items()]
    text = json.dumps([facts, layout], separators=(",", ":")).encode("ascii")
    return b"".join([_SIZE.pack(len(text)), text, *(values.tobytes() for values in stored.values())])


def _type_of(values: NumberArray) -> str:
    """Return an array's type by its name in `NUMBERS`; one byte has no order."""
    name = values.dtype.str.replace("|", "<").replace("<b1", "<u1")
    if name not in NUMBERS or values.ndim != 1:
        raise ValueError(f"got an array of {values.dtype} and shape {values.shape}")
    return name


def unpack(data: bytes) -> tuple[Any, Arrays]:
    """Return the facts and the arrays that `pack` joined.

    Raises
    ------
    CorruptDataError
        If bytes hold something else.
    """
    try:
        (n,) = _SIZE.unpack_from(data)
        place = _SIZE.size + n
        facts, layout = json.loads(data[_SIZE.size : place])
        arrays: Arrays = {}
        for name, kind, length in layout:
            require(kind in NUMBERS and type(length) is int and length >= 0, "an array of no numbers")
            size = int(kind[2:]) * length
            require(place + size <= len(data), "less numbers than it tells of")
            arrays[str(name)] = np.frombuffer(data, dtype=kind, count=length, offset=place)
            place += size
        require(place == len(data), "more numbers than it tells of")
    except (ValueError, TypeError, RecursionError, struct.error) as error:
        raise CorruptDataError(f"other content than facts and numbers ({error})") from None
    return facts, arrays


class ArrayWriter:
    """Collects numbers by name, one part after the other."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NumberArray]] = {}

    def add(self, **parts: NumberArray) -> None:
        """Add numbers, each of shape (n,), by name."""
        for name, part in parts.items():
            self._parts.setdefault(name, []).append(part)

    def arrays(self) -> Arrays:
        """Return all, whole numbers as narrow as they fit."""
        arrays = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        return {
            name: narrowest_integers(each) if each.dtype == np.int64 else each
            for name, each in arrays.items()
            if len(each)
        }


class ArrayReader:
    """Takes numbers out of arrays in the order in which an `ArrayWriter` got them, and checks them."""

    def __init__(self, arrays: Mapping[str, NumberArray]) -> None:
        self._arrays = arrays
        self._places = dict.fromkeys(arrays, 0)

    def _take(self, name: str, n: int, kinds: str) -> NumberArray:
        values, at = self._arrays.get(name, _NOTHING), self._places.get(name, 0)
        fits = values.ndim == 1 and (values.dtype.kind in kinds or values is _NOTHING)
        require(fits, f"{name} has type {values.dtype} and shape {values.shape}")
        if type(n) is not int:
            raise TypeError(f"{name}: {n!r} is no number of values")
        require(0 <= n <= len(values) - at, f"{name} has no {n} values more")
        self._places[name] = at + n
        return values[at : at + n]

    def integers(self, name: str, n: int, minimum: int = -(1 << 63), end: int = 1 << 63) -> IntArray:
        """Return the next whole numbers, shape (n,), int64, which are at least ``minimum`` and below ``end``."""
        values: IntArray = self._take(name, n, "iu").astype(np.int64)  # a copy: a part would keep the whole
        good = not n or minimum <= int(values.min()) <= int(values.max()) < end
        require(good, f"{name} has numbers beyond {max(abs(minimum), end)}")
        return values

    def codes(self, name: str, n: int) -> npt.NDArray[np.uint8]:
        """Return the next bytes, shape (n,), uint8."""
        values = self._take(name, n, "u")
        require(values.dtype == np.uint8 or not n, f"{name} has type {values.dtype}")
        return values.astype(np.uint8)

    def floats(self, name: str, n: int, *, is_bounded: bool = False) -> FloatArray:
        """Return the next real numbers, shape (n,), float64; none is beyond `MAX_MAGNITUDE`, or NaN, if bounded."""
        values: FloatArray = self._take(name, n, "f").astype(np.float64)
        good = not is_bounded or bool((np.abs(values) < MAX_MAGNITUDE).all())
        require(good, f"{name} has numbers beyond {MAX_MAGNITUDE}")
        return values

    def offsets(self, name: str, n: int, pool: str) -> IntArray:
        """Return where the next n parts of an array begin, shape (n + 1,), int64, from the lengths of another."""
        left = self.n_left(pool)
        offsets: IntArray = np.concatenate([[0], np.cumsum(self.integers(name, n, 0, left + 1))]).astype(np.int64)
        require(int(offsets[-1]) <= left, f"{name} with a wrong total")
        return offsets

    def n_left(self, name: str) -> int:
        """Return how many numbers of an array were not taken."""
        return len(self._arrays.get(name, _NOTHING)) - self._places.get(name, 0)

    def check_empty(self) -> None:
        """Raise unless all was taken."""
        left = [name for name in self._arrays if self.n_left(name)]
        require(not left, f"{', '.join(left)[:80]} has more values than queries have")


_NOTHING = np.empty(0, dtype=np.int8)


PUBLISHED = "published"
"""Mark of the statistics that the options name."""

PROFILE_FIELDS = ("profile", "next")
"""Profiles that were made: what a query searches with, and what it would search with next."""


def encode(states: Sequence[QueryState], subjects: SubjectReader) -> tuple[JsonFields, Arrays]:
    """Encode states as JSON fields and named arrays.

    Parameters
    ----------
    subjects : SubjectReader
        Subjects that places refer to.
    """
    writer, facts, used = ArrayWriter(), JsonFields(), None
    if isinstance(subjects, LocusSubjects):
        candidates = [each.selection.candidates.subjects for each in states if each.selection is not None]
        used = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *candidates]))
        facts["loci"] = len(used)
        _encode_loci(subjects.loci.take(used), writer)
    state_facts = [_encode_state(each, writer, used) for each in states]
    return facts | {"states": state_facts}, writer.arrays()


def _encode_state(state: QueryState, writer: ArrayWriter, used: IntArray | None) -> JsonFields:
    """Add a state's numbers to a writer; its places refer to the loci, if these are written."""
    facts: JsonFields = {"place": state.index}
    if (selection := state.selection) is not None:
        candidates, table = selection.candidates, selection.alignments
        if used is not None:
            candidates = replace(candidates, subjects=np.searchsorted(used, candidates.subjects))
        facts["selection"] = encode_selection(replace(selection, candidates=candidates), writer)
        facts["aligned"] = None if table is None else "here" if used is None else "located"
        if table is not None and used is None:
            _encode_table(table, writer)
    history, profile = state.history, state.query.profile
    n_made = 0 if history is None else len(history.steps) - history.is_finished
    if history is not None:
        n_base = len(history.base_alignment)
        facts["history"] = {
            "steps": [[step.included, step.new] for step in history.steps],
            "flags": [history.is_finished, history.converged, history.is_truncated],
        }
        following = None if history.converged else history.next_profile
        for name, name_profile in zip(PROFILE_FIELDS, (profile if n_made else None, following), strict=True):
            if name_profile is not None and name_profile.alignment is not None:
                rows = name_profile.alignment.take(np.arange(n_base, len(name_profile.alignment)))
                facts["history"][name] = _encode_rows(rows, writer)
    return facts


@dataclass(frozen=True, eq=False)
class StateDecoder:
    """Makes states again for a search.

    Parameters
    ----------
    queries : sequence of Query
        All that are searched; profiles name what is in the database.
    criteria : Criteria
        Options and thresholds of the search.
    grower : ProfileGrower or None
        Makes profiles again, where hits make some.
    subjects : Subjects
        The searched subjects.
    """

    queries: Sequence[Query]
    criteria: Criteria
    grower: ProfileGrower | None
    subjects: Subjects

    def decode(self, facts: JsonFields, arrays: Arrays, is_wanted: Callable[[int], bool] = lambda _: True) -> Batch:
        """Decode the states of `encode`; ``is_wanted`` chooses among their places.

        Raises
        ------
        CorruptDataError
            If there is something else, or what another search found.
        """
        try:
            reader = ArrayReader(arrays)
            subjects, n_places = self._decode_subjects(facts, reader)
            states = [self._decode_state(each, reader, subjects, n_places, is_wanted) for each in facts["states"]]
            reader.check_empty()
        except CorruptDataError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError, SwsearchError) as error:
            raise CorruptDataError(f"{type(error).__name__}: {error}") from error
        return Batch([state for state in states if state is not None], subjects)

    def _decode_subjects(self, facts: JsonFields, reader: ArrayReader) -> tuple[SubjectReader, int]:
        """Return what places are of, and how many there are."""
        if isinstance(self.subjects, FrameWindows):
            loci = _decode_loci(facts.get("loci", 0), reader, self.subjects)
            return LocusSubjects(self.subjects, loci), len(loci)
        return self.subjects, self.subjects.n_places

    def _decode_state(
        self, facts: JsonFields, reader: ArrayReader, subjects: SubjectReader, n_places: int,
        is_wanted: Callable[[int], bool],
    ) -> QueryState | None:  # fmt: skip
        place = facts["place"]
        require(type(place) is int and 0 <= place < len(self.queries), "it names queries that there are not")
        query, selection = self.queries[place], None
        if "selection" in facts:
            selection = decode_selection(facts["selection"], reader, self.criteria.options.published, n_places)
            aligned = facts["aligned"]
            if aligned == "here":
                selection = replace(selection, alignments=_decode_table(len(selection.candidates), reader))
            elif aligned is not None:
                selection = replace(selection, alignments=subjects.alignments_of(selection.candidates.subjects))
                require(selection.alignments is not None, "no alignments of its hits")
            self._check(query, selection, subjects)
        decoded = self._decode_history(
            QueryState(place, query, selection), facts.get("history"), reader, is_wanted(place)
        )
        return decoded if is_wanted(place) else None

    def _check(self, query: Query, selection: QueryCandidates, subjects: SubjectReader) -> None:
        """Raise unless a selection can be one of this query in this search."""
        ranked, statistics, nulls = selection.candidates, selection.statistics, selection.null_models
        lengths = subjects.lengths_of(ranked.subjects)
        require(len(np.unique(ranked.subjects)) == len(ranked), "duplicate subjects")
        require(selection.limit > 0, "an invalid limit")
        if isinstance(statistics, FittedStatistics):
            at, n = statistics.lengths, len(query.codes)
            good = statistics.fit == self.criteria.fit and statistics.query_length == n
            good = good and all(type(each) is int for each in at) and 0 < at[0] <= at[-1] < MAX_MAGNITUDE
            require(good and all(a < b for a, b in pairwise(at)), "statistics of another search")
        if ranked.evalues is not None:
            require(statistics is not None and not np.isnan(ranked.evalues).any(), "invalid E-values")
        if nulls is not None:
            fits = len(nulls) == len(ranked) and np.array_equal(nulls.lengths, lengths)
            require(fits, "statistics of other subjects")
        if selection.alignments is not None:
            require(np.array_equal(selection.alignments.score, ranked.scores), "alignments with other scores")
            _check_table(selection.alignments, query, lengths)

    def _decode_history(
        self, state: QueryState, facts: JsonFields | None, reader: ArrayReader, is_wanted: bool
    ) -> QueryState:
        """Return a state with its iterations, and with the profile of the last one."""
        grower, query = self.grower, state.query
        if grower is None or facts is None:
            good = grower is None and facts is None and state.selection is not None
            require(good, "other iterations than were asked for")
            return state
        history, n = grower.first_state(state.index, query).history, len(query.codes)
        assert history is not None
        base, iteration = history.base_alignment, search_iteration(query.profile)
        counts = [count for step in facts["steps"] for count in step]
        good = all(len(step) == 2 for step in facts["steps"])
        require(
            good and all(type(each) is int and 0 <= each < MAX_MAGNITUDE for each in counts), "invalid iterations"
        )
        steps = [IterationStep(iteration + k, *step) for k, step in enumerate(facts["steps"])]
        is_ended, converged, is_cut = facts["flags"]
        n_made, n_most = len(steps) - is_ended, history.last - iteration + 1
        good = all(type(each) is bool for each in facts["flags"]) and 0 <= n_made < n_most and len(steps) > 0
        good = good and is_ended == (state.selection is not None)
        require(good and (not is_ended or converged or len(steps) == n_most), "invalid iterations")
        is_next = bool(is_ended and self.criteria.options.keep_profiles and n)
        rows = {name: self._decode_rows(facts[name], n, reader) for name in PROFILE_FIELDS if name in facts}
        good = ("profile" in rows) == (n_made > 0) and ("next" in rows) == (is_next and not converged)
        require(good, "other profiles than were made")
        if not is_wanted:
            return state

        def profile_of(name: str, last: int) -> Profile:
            alignment = base.with_rows(rows[name])
            require(len(alignment) and (alignment.query != GAP).all(), "a profile without a query")
            return grower.make_profile(query, alignment, last)

        last_profile = profile_of("profile", iteration + n_made - 1) if n_made else query.profile
        following = None
        if is_next:
            following = (
                grower.profile_after(last_profile, query, base)
                if converged
                else profile_of("next", iteration + n_made)
            )
        history = History(base, history.last, tuple(steps), is_ended, converged, is_cut, following)
        return replace(state, query=replace(query, profile=last_profile), history=history)

    def _decode_rows(self, facts: JsonFields, n_columns: int, reader: ArrayReader) -> QueryAlignment:
        """Return the next rows of an alignment with a query."""
        names, n_inserted = facts["names"], facts["insertions"]
        require(all([*map(type, name)] == [str, str] for name in names), "invalid names")
        n = len(names)
        columns = reader.codes("columns", n * n_columns).reshape(n, n_columns)
        require(((columns < len(PROTEIN.letters)) | (columns == GAP)).all(), "invalid residues of a profile")
        rows = reader.integers("insertion_rows", n_inserted, 0, n)
        before = reader.integers("insertion_columns", n_inserted, 0, MAX_MAGNITUDE)
        bounds = reader.offsets("insertion_sizes", n_inserted, "inserted")
        inserted = reader.codes("inserted", int(bounds[-1]))
        good = (np.diff(rows * MAX_MAGNITUDE + before) >= 0).all() and before.max(initial=0) <= n_columns
        require(good and inserted.max(initial=0) < len(PROTEIN.letters), "invalid insertions of a profile")
        starts, ends = (
            reader.integers("row_starts", n, 0, MAX_MAGNITUDE),
            reader.integers("row_ends", n, 0, MAX_MAGNITUDE),
        )
        require((starts <= ends).all(), "invalid rows of a profile")
        return QueryAlignment(
            [identifier for identifier, _ in names], [description for _, description in names], columns, starts, ends,
            np.stack([rows, before, bounds[:-1], bounds[1:]], axis=1), inserted,
            reader.integers("row_subjects", n, -1, self.criteria.counts.n_records), reader.floats("row_evalues", n),
            reader.integers("row_iterations", n, 0, MAX_MAGNITUDE),
        )  # fmt: skip


def _encode_rows(rows: QueryAlignment, writer: ArrayWriter) -> JsonFields:
    writer.add(
        columns=rows.columns.reshape(-1), row_starts=rows.starts, row_ends=rows.ends, row_subjects=rows.subjects,
        row_evalues=rows.evalues, row_iterations=rows.iterations, insertion_rows=rows.insertions[:, 0],
        insertion_columns=rows.insertions[:, 1], insertion_sizes=rows.insertions[:, 3] - rows.insertions[:, 2],
        inserted=rows.inserted,
    )  # fmt: skip
    names = [list(each) for each in zip(rows.identifiers, rows.descriptions, strict=True)]
    return {"names": names, "insertions": len(rows.insertions)}


def _encode_table(table: AlignmentTable, writer: ArrayWriter) -> None:
    writer.add(**{name: getattr(table, name) for name in ALIGNMENT_COLUMNS})
    writer.add(n_runs=np.diff(table.run_offsets), run_lengths=table.run_lengths, run_operations=table.run_operations)


def _decode_table(n: int, reader: ArrayReader) -> AlignmentTable:
    columns = {name: reader.integers(name, n, -MAX_MAGNITUDE + 1, MAX_MAGNITUDE) for name in ALIGNMENT_COLUMNS}
    offsets = reader.offsets("n_runs", n, "run_operations")
    n_runs = int(offsets[-1])
    return AlignmentTable(
        **columns, run_offsets=offsets, run_lengths=reader.integers("run_lengths", n_runs, 1, MAX_MAGNITUDE),
        run_operations=reader.codes("run_operations", n_runs),
    )  # fmt: skip


def _check_table(table: AlignmentTable, query: Query, subject_lengths: IntArray) -> None:
    """Raise unless alignments are possible for a query and subjects of these lengths, shape (n,)."""
    is_shifted = query.frame is not None and query.frame.step == 1
    steps = NUCLEOTIDES_OF if is_shifted else {"M": 1, "I": 1, "D": 0}
    operations, counts = table.run_operations, np.diff(table.run_offsets)
    of_each = np.zeros((4, 256), dtype=np.int64)  # what a column of each operation takes
    for operation, step in steps.items():
        of_each[:, ord(operation)] = step, operation in "MD", operation == "M", 1
    require(of_each[3, operations].all(), "alignments of other operations")
    before = np.concatenate(
        [np.zeros((4, 1), dtype=np.int64), np.cumsum(of_each[:, operations] * table.run_lengths, axis=1)], axis=1
    )
    first = before[:, table.run_offsets[:-1]]
    on_query, on_subject, pairs, columns = before[:, table.run_offsets[1:]] - first
    at = before[0, 1:] - np.repeat(first[0] - table.query_start, counts)
    end = len(query.codes) + (CODON - 1 if is_shifted else 0)
    good = (table.query_start >= 0) & (table.query_end - table.query_start == on_query)
    good &= (table.subject_start >= 0) & (table.subject_end - table.subject_start == on_subject)
    good &= (table.query_end <= end) & (table.subject_end <= subject_lengths) & (table.length == columns)
    good &= (table.gaps == columns - pairs) & (table.gap_openings >= 0) & (table.gap_openings <= table.gaps)
    good &= (table.identities >= 0) & (table.identities <= table.positives) & (table.positives <= pairs)
    require(good.all() and ((at >= 0) & (at <= end)).all(), "invalid alignments")


def _encode_loci(loci: Loci, writer: ArrayWriter) -> None:
    regions = loci.regions
    writer.add(records=regions.records, numbers=regions.numbers, begins=regions.begins, ends=regions.ends)
    _encode_table(loci.table, writer)


def _decode_loci(n: int, reader: ArrayReader, windows: FrameWindows) -> Loci:
    """Return the next loci of a database of DNA, with their alignments."""
    records = reader.integers("records", n, 0, len(windows.dna_lengths))
    numbers = reader.integers("numbers", n)
    begins, ends = reader.integers("begins", n, 0, MAX_MAGNITUDE), reader.integers("ends", n, 0, MAX_MAGNITUDE)
    dna_lengths = windows.dna_lengths[records]
    in_frame = (dna_lengths - (np.abs(numbers) - 1)) // CODON
    good = np.isin(numbers, FRAME_NUMBERS) & (begins < ends) & (ends <= in_frame)
    require(good.all(), "invalid regions of frames")
    return Loci(FramePieces(records, numbers, begins, ends), _decode_table(n, reader), dna_lengths)


def encode_selection(selection: QueryCandidates, writer: ArrayWriter) -> JsonFields:
    """Write a selection's numbers, and return the rest, except alignments and the data of profiles."""
    candidates, nulls, counted = selection.candidates, selection.null_models, selection.distribution
    writer.add(scores=candidates.scores, subjects=candidates.subjects)
    if candidates.evalues is not None:
        writer.add(evalues=candidates.evalues)
    if nulls is not None:
        if nulls.statistics != selection.statistics:
            raise ValueError("selection: expected nulls that belong to its statistics")
        writer.add(lengths=nulls.lengths, levels=nulls.levels, bounds=nulls.bounds)
    if counted is not None:
        writer.add(counted=counted.scores, counts=counted.counts)
    return {
        "candidates": len(candidates),
        "rated": candidates.evalues is not None,
        "nulls": None if nulls is None else len(nulls),
        "counted": None if counted is None else len(counted.scores),
        "limit": selection.limit,
        "statistics": _statistics_to_json(selection.statistics),
        "reason": selection.no_evalue_reason,
        "warning": selection.warning,
    }


def decode_selection(
    facts: JsonFields, reader: ArrayReader, published: KarlinAltschul | None, n_places: int
) -> QueryCandidates:
    """Return the selection of facts and of the next numbers of a reader; its places are below ``n_places``."""
    n = facts["candidates"]
    scores, subjects = reader.integers("scores", n, -MAX_MAGNITUDE + 1, MAX_MAGNITUDE), reader.integers("subjects", n)
    good = not n or 0 <= int(subjects.min()) <= int(subjects.max()) < n_places
    require(good, "it names subjects that the database lacks")
    ranked = RankedSubjects(scores, subjects, reader.floats("evalues", n) if facts["rated"] else None)
    statistics = _statistics_from_json(facts["statistics"], published)
    nulls, counted = None, None
    if (n_nulls := facts["nulls"]) is not None:
        require(isinstance(statistics, FittedStatistics), "it has nulls without a fit")
        assert isinstance(statistics, FittedStatistics)
        lengths = reader.integers("lengths", n_nulls, -MAX_MAGNITUDE + 1, MAX_MAGNITUDE)
        levels, bounds = reader.floats("levels", n_nulls, is_bounded=True), reader.floats("bounds", n_nulls)
        nulls = PairNullModels(statistics, lengths, levels, bounds)
    if (n_counted := facts["counted"]) is not None:
        counted = ScoreCounts(reader.integers("counted", n_counted), reader.integers("counts", n_counted))
    limit, reason, warning = (facts[name] for name in ("limit", "reason", "warning"))
    require(type(limit) is int and isinstance(reason, str) and isinstance(warning, str), "it has invalid notes")
    return QueryCandidates(ranked, limit, statistics, reason, counted, nulls, warning)


def _statistics_to_json(statistics: Statistics | None) -> JsonFields | str | None:
    if statistics is None:
        return None
    if not isinstance(statistics, FittedStatistics):
        return PUBLISHED
    fit = statistics.fit
    return {
        "fit": [fit.mode, fit.gap_extend, fit.n_subjects, fit.residues, fit.frames, *[True] * fit.is_reversed],
        "query_length": statistics.query_length,
        "lengths": statistics.lengths,
        "means": [float(value).hex() for value in statistics.means],  # every bit
        "variances": [float(value).hex() for value in statistics.variances],
        "shape": getattr(statistics.distribution, "shape", None),
    }


def _statistics_from_json(facts: JsonFields | str | None, published: KarlinAltschul | None) -> Statistics | None:
    if facts is None:
        return None
    if isinstance(facts, str):
        require(facts == PUBLISHED and published is not None, "it has statistics that were not asked for")
        return published
    shape = facts["shape"]
    distribution: Distribution = Gumbel() if shape is None else PearsonThree(int(shape))
    means, variances = (tuple(map(float.fromhex, facts[name])) for name in ("means", "variances"))
    fit, lengths = FitSettings(*facts["fit"]), tuple(facts["lengths"])
    good = 0 < len(lengths) == len(means) == len(variances) and min(variances) > 0
    require(good, "it has a fit without lengths, means or variances")
    require(shape is None or 1 <= int(shape) <= MAX_SHAPE, f"it has a distribution of shape {shape}")
    for name, values in (("means", means), ("variances", variances)):
        require(all(abs(value) < MAX_MAGNITUDE for value in values), f"{name} has numbers beyond {MAX_MAGNITUDE}")
    return FittedStatistics(fit, facts["query_length"], lengths, means, variances, distribution)
