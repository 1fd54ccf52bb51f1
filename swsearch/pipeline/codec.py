"""States of queries as bytes and back, the same to the bit: what a checkpoint stores.

Of each state its selection and its history are written, and of its subjects what cannot be read again: nothing of
proteins, of DNA the loci. A profile is not written, but the alignment that it follows from. What is read is checked,
so that other bytes are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from swsearch.alignments import ALIGNMENT_COLUMNS, AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.blocks import IntArray
from swsearch.db.dna_segment import FramePieces
from swsearch.errors import SwsearchError
from swsearch.inputs import Query
from swsearch.pipeline.batch import Batch, History, QueryState
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.iterate import ProfileGrower
from swsearch.pipeline.locate import LocusSubjects
from swsearch.pipeline.loci import Loci
from swsearch.pipeline.number_arrays import MAX_MAGNITUDE as END
from swsearch.pipeline.number_arrays import ArrayReader, Arrays, ArrayWriter, Facts, Unreadable, require
from swsearch.pipeline.profile_members import next_iteration
from swsearch.pipeline.ranking import Ranked
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.subjects import SubjectReader, Subjects
from swsearch.pipeline.windows import FrameWindows
from swsearch.profiles.alignment import GAP, QueryAlignment
from swsearch.profiles.profile import Profile
from swsearch.results import IterationStep
from swsearch.shifted_alignment import NUCLEOTIDES_OF
from swsearch.statistics.distributions import MOST_SHAPE, Distribution, Gumbel, PearsonThree
from swsearch.statistics.fitted import Fit, FittedStatistics, PairNulls
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics
from swsearch.statistics.observed import ScoreCounts
from swsearch.translation.frame import CODON, FRAME_NUMBERS

PUBLISHED = "published"
"""Stands for the statistics that the options name."""

MADE = ("profile", "next")
"""Profiles that were made: what a query searches with, and what it would search with next."""


def encode(states: Sequence[QueryState], subjects: SubjectReader) -> tuple[Facts, Arrays]:
    """Return states as what JSON can hold, and numbers.

    Parameters
    ----------
    states : sequence of QueryState
        Of one batch.
    subjects : SubjectReader
        What their places are of.
    """
    writer, facts, used = ArrayWriter(), Facts(), None
    if isinstance(subjects, LocusSubjects):
        found = [each.selection.candidates.subjects for each in states if each.selection is not None]
        used = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))
        facts["loci"] = len(used)
        _add_loci(subjects.loci.take(used), writer)
    told = [_add_state(each, writer, used) for each in states]
    return facts | {"states": told}, writer.arrays()


def _add_state(state: QueryState, writer: ArrayWriter, used: IntArray | None) -> Facts:
    """Give a state's numbers to a writer; its places count among those of the loci, if these are written."""
    facts: Facts = {"place": state.place}
    if (selection := state.selection) is not None:
        candidates, table = selection.candidates, selection.alignments
        if used is not None:
            candidates = replace(candidates, subjects=np.searchsorted(used, candidates.subjects))
        facts["selection"] = add_selection(replace(selection, candidates=candidates), writer)
        facts["aligned"] = None if table is None else "here" if used is None else "located"
        if table is not None and used is None:
            _add_table(table, writer)
    history, profile = state.history, state.query.profile
    n_made = 0 if history is None else len(history.steps) - history.is_ended
    if history is not None:
        n_base = len(history.base)
        facts["history"] = {
            "steps": [[step.included, step.new] for step in history.steps],
            "flags": [history.is_ended, history.converged, history.is_cut],
        }
        following = None if history.converged else history.next_profile
        for name, made in zip(MADE, (profile if n_made else None, following), strict=True):
            if made is not None and made.alignment is not None:
                rows = made.alignment.take(np.arange(n_base, len(made.alignment)))
                facts["history"][name] = _add_rows(rows, writer)
    return facts


@dataclass(frozen=True, eq=False)
class StateDecoder:
    """Makes states again for a search.

    Parameters
    ----------
    queries : sequence of Query
        All that are searched; profiles name what is in the database.
    criteria : Criteria
        What is looked for.
    grower : ProfileGrower or None
        Makes profiles again, where hits make some.
    subjects : Subjects
        What is searched.
    """

    queries: Sequence[Query]
    criteria: Criteria
    grower: ProfileGrower | None
    subjects: Subjects

    def decode(self, facts: Facts, arrays: Arrays, is_wanted: Callable[[int], bool] = lambda _: True) -> Batch:
        """Return the states that `encode` took apart, or those whose places are wanted.

        Raises
        ------
        Unreadable
            If there is something else, or what another search found.
        """
        try:
            reader = ArrayReader(arrays)
            subjects, n_places = self._subjects(facts, reader)
            states = [self._state(each, reader, subjects, n_places, is_wanted) for each in facts["states"]]
            reader.check_empty()
        except Unreadable:
            raise
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError, SwsearchError) as error:
            raise Unreadable(f"{type(error).__name__}: {error}") from error
        return Batch([state for state in states if state is not None], subjects)

    def _subjects(self, facts: Facts, reader: ArrayReader) -> tuple[SubjectReader, int]:
        """Return what places are of, and how many there are."""
        if isinstance(self.subjects, FrameWindows):
            loci = _take_loci(facts.get("loci", 0), reader, self.subjects)
            return LocusSubjects(self.subjects, loci), len(loci)
        return self.subjects, self.subjects.n_places

    def _state(
        self, facts: Facts, reader: ArrayReader, subjects: SubjectReader, n_places: int,
        is_wanted: Callable[[int], bool],
    ) -> QueryState | None:  # fmt: skip
        place = facts["place"]
        require(type(place) is int and 0 <= place < len(self.queries), "it names queries that there are not")
        query, selection = self.queries[place], None
        if "selection" in facts:
            selection = take_selection(facts["selection"], reader, self.criteria.options.published, n_places)
            aligned = facts["aligned"]
            if aligned == "here":
                selection = replace(selection, alignments=_take_table(len(selection.candidates), reader))
            elif aligned is not None:
                selection = replace(selection, alignments=subjects.alignments_of(selection.candidates.subjects))
                require(selection.alignments is not None, "no alignments of its hits")
            self._check(query, selection, subjects)
        made = self._history(QueryState(place, query, selection), facts.get("history"), reader, is_wanted(place))
        return made if is_wanted(place) else None

    def _check(self, query: Query, selection: Selection, subjects: SubjectReader) -> None:
        """Raise unless a selection can be one of this query in this search."""
        ranked, statistics, nulls = selection.candidates, selection.statistics, selection.nulls
        lengths = subjects.lengths_of(ranked.subjects)
        require(len(np.unique(ranked.subjects)) == len(ranked), "duplicate subjects")
        require(selection.limit > 0, "an invalid limit")
        if isinstance(statistics, FittedStatistics):
            at, n = statistics.lengths, len(query.codes)
            good = statistics.fit == self.criteria.fit and statistics.query_length == n
            good = good and all(type(each) is int for each in at) and 0 < at[0] <= at[-1] < END
            require(good and all(a < b for a, b in pairwise(at)), "statistics of another search")
        if ranked.evalues is not None:
            require(statistics is not None and not np.isnan(ranked.evalues).any(), "invalid E-values")
        if nulls is not None:
            fits = len(nulls) == len(ranked) and np.array_equal(nulls.lengths, lengths)
            require(fits, "statistics of other subjects")
        if selection.alignments is not None:
            require(np.array_equal(selection.alignments.score, ranked.scores), "alignments with other scores")
            _check_table(selection.alignments, query, lengths)

    def _history(self, state: QueryState, facts: Facts | None, reader: ArrayReader, is_wanted: bool) -> QueryState:
        """Return a state with its iterations, and with the profile of the last one."""
        grower, query = self.grower, state.query
        if grower is None or facts is None:
            good = grower is None and facts is None and state.selection is not None
            require(good, "other iterations than were asked for")
            return state
        history, n = grower.first_state(state.place, query).history, len(query.codes)
        assert history is not None
        base, iteration = history.base, next_iteration(query.profile)
        counts = [count for found in facts["steps"] for count in found]
        good = all(len(found) == 2 for found in facts["steps"])
        require(good and all(type(each) is int and 0 <= each < END for each in counts), "invalid iterations")
        steps = [IterationStep(iteration + k, *found) for k, found in enumerate(facts["steps"])]
        is_ended, converged, is_cut = facts["flags"]
        n_made, n_most = len(steps) - is_ended, history.last - iteration + 1
        good = all(type(each) is bool for each in facts["flags"]) and 0 <= n_made < n_most and len(steps) > 0
        good = good and is_ended == (state.selection is not None)
        require(good and (not is_ended or converged or len(steps) == n_most), "invalid iterations")
        is_next = bool(is_ended and self.criteria.options.keep_next and n)
        rows = {name: self._rows(facts[name], n, reader) for name in MADE if name in facts}
        good = ("profile" in rows) == (n_made > 0) and ("next" in rows) == (is_next and not converged)
        require(good, "other profiles than were made")
        if not is_wanted:
            return state

        def profile_of(name: str, last: int) -> Profile:
            alignment = base.followed_by(rows[name])
            require(len(alignment) and (alignment.query != GAP).all(), "a profile without a query")
            return grower.profile_of(query, alignment, last)

        made = profile_of("profile", iteration + n_made - 1) if n_made else query.profile
        following = None
        if is_next:
            alone = made or grower.profile_alone(query, base)
            following = alone if converged else profile_of("next", iteration + n_made)
        history = History(base, history.last, tuple(steps), is_ended, converged, is_cut, following)
        return replace(state, query=replace(query, profile=made), history=history)

    def _rows(self, facts: Facts, n_columns: int, reader: ArrayReader) -> QueryAlignment:
        """Return the next rows of an alignment with a query."""
        names, n_inserted = facts["names"], facts["insertions"]
        require(all([*map(type, name)] == [str, str] for name in names), "invalid names")
        n = len(names)
        columns = reader.codes("columns", n * n_columns).reshape(n, n_columns)
        require(((columns < len(PROTEIN.letters)) | (columns == GAP)).all(), "invalid residues of a profile")
        rows = reader.whole("insertion_rows", n_inserted, 0, n)
        before = reader.whole("insertion_columns", n_inserted, 0, END)
        bounds = reader.offsets("insertion_sizes", n_inserted, "inserted")
        inserted = reader.codes("inserted", int(bounds[-1]))
        good = (np.diff(rows * END + before) >= 0).all() and before.max(initial=0) <= n_columns
        require(good and inserted.max(initial=0) < len(PROTEIN.letters), "invalid insertions of a profile")
        starts, ends = reader.whole("row_starts", n, 0, END), reader.whole("row_ends", n, 0, END)
        require((starts <= ends).all(), "invalid rows of a profile")
        return QueryAlignment(
            [identifier for identifier, _ in names], [description for _, description in names], columns, starts, ends,
            np.stack([rows, before, bounds[:-1], bounds[1:]], axis=1), inserted,
            reader.whole("row_subjects", n, -1, self.criteria.counts.n_records), reader.real("row_evalues", n),
            reader.whole("row_iterations", n, 0, END),
        )  # fmt: skip


def _add_rows(rows: QueryAlignment, writer: ArrayWriter) -> Facts:
    writer.add(
        columns=rows.columns.reshape(-1), row_starts=rows.starts, row_ends=rows.ends, row_subjects=rows.subjects,
        row_evalues=rows.evalues, row_iterations=rows.iterations, insertion_rows=rows.insertions[:, 0],
        insertion_columns=rows.insertions[:, 1], insertion_sizes=rows.insertions[:, 3] - rows.insertions[:, 2],
        inserted=rows.inserted,
    )  # fmt: skip
    names = [list(each) for each in zip(rows.identifiers, rows.descriptions, strict=True)]
    return {"names": names, "insertions": len(rows.insertions)}


def _add_table(table: AlignmentTable, writer: ArrayWriter) -> None:
    writer.add(**{name: getattr(table, name) for name in ALIGNMENT_COLUMNS})
    writer.add(n_runs=np.diff(table.run_offsets), run_lengths=table.run_lengths, run_operations=table.run_operations)


def _take_table(n: int, reader: ArrayReader) -> AlignmentTable:
    columns = {name: reader.whole(name, n, -END + 1, END) for name in ALIGNMENT_COLUMNS}
    offsets = reader.offsets("n_runs", n, "run_operations")
    n_runs = int(offsets[-1])
    return AlignmentTable(
        **columns, run_offsets=offsets, run_lengths=reader.whole("run_lengths", n_runs, 1, END),
        run_operations=reader.codes("run_operations", n_runs),
    )  # fmt: skip


def _check_table(table: AlignmentTable, query: Query, subject_lengths: IntArray) -> None:
    """Raise unless alignments can be some of a query with subjects of these lengths, shape (n,)."""
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


def _add_loci(loci: Loci, writer: ArrayWriter) -> None:
    regions = loci.regions
    writer.add(records=regions.records, numbers=regions.numbers, begins=regions.begins, ends=regions.ends)
    _add_table(loci.table, writer)


def _take_loci(n: int, reader: ArrayReader, windows: FrameWindows) -> Loci:
    """Return the next loci of a database of DNA, with their alignments."""
    records = reader.whole("records", n, 0, len(windows.dna_lengths))
    numbers = reader.whole("numbers", n)
    begins, ends = reader.whole("begins", n, 0, END), reader.whole("ends", n, 0, END)
    dna_lengths = windows.dna_lengths[records]
    in_frame = (dna_lengths - (np.abs(numbers) - 1)) // CODON
    good = np.isin(numbers, FRAME_NUMBERS) & (begins < ends) & (ends <= in_frame)
    require(good.all(), "invalid regions of frames")
    return Loci(FramePieces(records, numbers, begins, ends), _take_table(n, reader), dna_lengths)


def add_selection(selection: Selection, writer: ArrayWriter) -> Facts:
    """Give a selection's numbers to a writer, and return the rest, but for alignments and what profiles take."""
    candidates, nulls, counted = selection.candidates, selection.nulls, selection.distribution
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
        "statistics": _facts_of(selection.statistics),
        "reason": selection.reason,
        "doubt": selection.doubt,
    }


def take_selection(facts: Facts, reader: ArrayReader, published: KarlinAltschul | None, n_places: int) -> Selection:
    """Return the selection of facts and of the next numbers of a reader; its places are below ``n_places``."""
    n = facts["candidates"]
    scores, subjects = reader.whole("scores", n, -END + 1, END), reader.whole("subjects", n)
    good = not n or 0 <= int(subjects.min()) <= int(subjects.max()) < n_places
    require(good, "it names subjects that the database lacks")
    ranked = Ranked(scores, subjects, reader.real("evalues", n) if facts["rated"] else None)
    statistics = _statistics(facts["statistics"], published)
    nulls, counted = None, None
    if (n_nulls := facts["nulls"]) is not None:
        require(isinstance(statistics, FittedStatistics), "it has nulls without a fit")
        assert isinstance(statistics, FittedStatistics)
        lengths = reader.whole("lengths", n_nulls, -END + 1, END)
        levels, bounds = reader.real("levels", n_nulls, is_bounded=True), reader.real("bounds", n_nulls)
        nulls = PairNulls(statistics, lengths, levels, bounds)
    if (n_counted := facts["counted"]) is not None:
        counted = ScoreCounts(reader.whole("counted", n_counted), reader.whole("counts", n_counted))
    limit, reason, doubt = (facts[name] for name in ("limit", "reason", "doubt"))
    require(type(limit) is int and isinstance(reason, str) and isinstance(doubt, str), "it has invalid notes")
    return Selection(ranked, limit, statistics, reason, counted, nulls, doubt)


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
        "means": [float(value).hex() for value in statistics.means],  # every bit
        "variances": [float(value).hex() for value in statistics.variances],
        "shape": getattr(statistics.distribution, "shape", None),
    }


def _statistics(facts: Facts | str | None, published: KarlinAltschul | None) -> Statistics | None:
    if facts is None:
        return None
    if isinstance(facts, str):
        require(facts == PUBLISHED and published is not None, "it has statistics that were not asked for")
        return published
    shape = facts["shape"]
    distribution: Distribution = Gumbel() if shape is None else PearsonThree(int(shape))
    means, variances = (tuple(map(float.fromhex, facts[name])) for name in ("means", "variances"))
    fit, lengths = Fit(*facts["fit"]), tuple(facts["lengths"])
    good = 0 < len(lengths) == len(means) == len(variances) and min(variances) > 0
    require(good, "it has a fit without lengths, means or variances")
    require(shape is None or 1 <= int(shape) <= MOST_SHAPE, f"it has a distribution of shape {shape}")
    for name, values in (("means", means), ("variances", variances)):
        require(all(abs(value) < END for value in values), f"{name} has numbers beyond {END}")
    return FittedStatistics(fit, facts["query_length"], lengths, means, variances, distribution)
