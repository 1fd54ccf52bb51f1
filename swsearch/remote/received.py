"""Results that come from a server, as results of a search: hits are aligned here, when that is asked for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import IntArray
from swsearch.db import Database
from swsearch.db.taxonomy import Taxa
from swsearch.engines.base import ChunkPlan, Engine, LoadedChunk, Progress, QueryGroup, Workload
from swsearch.errors import InputError
from swsearch.inputs import Query
from swsearch.options.words import Mask
from swsearch.pipeline.candidate_codec import Unreadable, put_together
from swsearch.pipeline.filters import Allowed
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_job import SearchJob
from swsearch.pipeline.search_results import SearchResults
from swsearch.pipeline.selection import Selection
from swsearch.pipeline.subject_reader import SubjectReader
from swsearch.profiles.alignment import spread
from swsearch.profiles.profile import Profile
from swsearch.profiles.saving import read_json
from swsearch.profiles.texts import Text
from swsearch.recurrence import Recurrence
from swsearch.remote.frames import BrokenOffError, FrameSource, NumberArray
from swsearch.remote.taxa import taxa_told
from swsearch.remote.transfer import TransferHeader, TransferReader, request_facts
from swsearch.remote.wire import SearchRequest
from swsearch.results import HitList, IterationStep, SearchResult
from swsearch.run_info import Checksum, Execution, Origin, RunInfo, checksums
from swsearch.scoring import QueryRows
from swsearch.statistics.fitted import FittedStatistics

if TYPE_CHECKING:
    from swsearch.blocks import Chunk


@dataclass(frozen=True, eq=False)
class FoundSubjects:
    """Subjects of a database that some queries found.

    Parameters
    ----------
    places : ndarray, shape (n,), int64
        Places in the database's input, ascending.
    codes, headers : ndarray, shape (n_bytes,), uint8
        Residues, and header lines without ``>``, one subject after the other.
    offsets, header_offsets : ndarray, shape (n + 1,), int64
        Where each begins, and the end of the last.
    run_offsets, starts, ends : ndarray, int64
        What the mask in force covers: runs ``run_offsets[i]`` to ``run_offsets[i + 1]`` are those of subject i.
    taxa : sequence of Taxa or None
        Of each; None where the database knows none.
    """

    places: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    codes: ByteArray = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    offsets: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    headers: ByteArray = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    header_offsets: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    run_offsets: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    starts: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ends: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    taxa: Sequence[Taxa] | None = None

    def rows(self, subjects: Any) -> IntArray:
        """Return where subjects stand among these, by their places in the input, shape (n,)."""
        given = np.asarray(subjects, dtype=np.int64)
        rows: IntArray = np.searchsorted(self.places, given)
        if not len(self.places) and len(given):
            raise IndexError("a subject that did not come")
        if len(given) and not np.array_equal(self.places[np.minimum(rows, len(self.places) - 1)], given):
            raise IndexError("a subject that did not come")
        return rows


class ReceivedDatabase(Database):
    """What is known here of a database on a server: its counts, and the subjects that were found.

    Parameters
    ----------
    header : TransferHeader
        Its name and counts.
    found : FoundSubjects, optional
        Those of its subjects that are here; any other one raises ``IndexError``.
    """

    def __init__(self, header: TransferHeader, found: FoundSubjects | None = None) -> None:
        self._header, self._found = header, found or FoundSubjects()
        self.name, self.mask = header.name, header.mask
        self.n_subjects, self.n_residues = header.n_subjects, header.n_residues
        self.length_runs = header.length_runs

    def check_open(self) -> None:
        """Do nothing: it is always open."""

    def close(self) -> None:
        """Do nothing."""

    def shared(self) -> ReceivedDatabase:
        """Return itself."""
        return self

    @property
    def volumes(self) -> tuple[Any, ...]:
        """No files."""
        return ()

    @property
    def has_taxa(self) -> bool:
        """Whether the server's database knows taxa, and told those of the subjects."""
        return self._found.taxa is not None

    def taxa_of(self, subjects: Any) -> list[Taxa]:
        """Return the taxa of subjects."""
        taxa = self._found.taxa or ()
        return [taxa[row] for row in self._found.rows(subjects).tolist()]

    def sources(self) -> list[dict[str, Any]]:
        """Return the files that it was built from."""
        return [dict(source) for source in self._header.sources]

    def header(self, index: int) -> bytes:
        """Return a subject's header line."""
        return self.headers_of([index])[0].tobytes()

    def codes(self, index: int) -> ByteArray:
        """Return a subject's codes, shape (n,), uint8, nothing masked."""
        return self.codes_of([index])[0]

    def masked(self, index: int, mask: Mask) -> list[tuple[int, int]]:
        """Return what the mask in force covers of a subject."""
        _, starts, ends = self.masked_of([index], mask)
        return list(zip(starts.tolist(), ends.tolist(), strict=True))

    def lengths_of(self, subjects: Any) -> npt.NDArray[np.int32]:
        """Return the lengths of subjects, shape (n,), int32."""
        return np.diff(self._found.offsets)[self._found.rows(subjects)].astype(np.int32)

    def codes_of(self, subjects: Any) -> tuple[ByteArray, IntArray]:
        """Return the codes of subjects, and where each begins, shape (n + 1,); see `Database.codes_of`."""
        return _taken(self._found.codes, self._found.offsets, self._found.rows(subjects))

    def headers_of(self, subjects: Any) -> tuple[ByteArray, IntArray]:
        """Return header lines of subjects, and where each begins, shape (n + 1,); see `Database.headers_of`."""
        return _taken(self._found.headers, self._found.header_offsets, self._found.rows(subjects))

    def masked_of(self, subjects: Any, mask: Mask) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return what the mask in force covers, where each begins in it, shape (n + 1,); see `Database.masked_of`."""
        found, rows = self._found, self._found.rows(subjects)
        counts = np.diff(found.run_offsets)[rows]
        runs = spread(found.run_offsets[:-1][rows], counts)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return offsets, found.starts[runs].astype(np.int32), found.ends[runs].astype(np.int32)

    def __repr__(self) -> str:
        return f"<ReceivedDatabase {self.name!r}: {self.n_subjects:,} subjects, {self.n_residues:,} residues>"


def _taken(pool: ByteArray, offsets: IntArray, rows: IntArray) -> tuple[ByteArray, IntArray]:
    lengths = np.diff(offsets)[rows]
    taken: ByteArray = pool[spread(offsets[:-1][rows], lengths)]
    return taken, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


class ServerEngine(Engine):
    """Stands for the engine of a server; it scores nothing itself.

    Parameters
    ----------
    description : str
        What scored there.
    """

    name = "server"

    def __init__(self, description: str) -> None:
        self._description = description

    @property
    def description(self) -> str:
        """What scored on the server."""
        return self._description

    def plan(self, workload: Workload) -> ChunkPlan:
        """Return a plan that holds for nobody."""
        return ChunkPlan()

    def prepare(self, profiles: Sequence[QueryRows], recurrence: Recurrence) -> NoReturn:
        """Refuse: the server does that."""
        raise NotImplementedError("a server's engine scores nothing here")

    def load(self, chunk: Chunk) -> NoReturn:
        """Refuse: the server does that."""
        raise NotImplementedError("a server's engine scores nothing here")

    def score(self, group: QueryGroup, loaded: LoadedChunk, progress: Progress | None = None) -> NoReturn:
        """Refuse: the server does that."""
        raise NotImplementedError("a server's engine scores nothing here")


class ReceivedJob(SearchJob):
    """A search that ran on a server: its results are made of what the server has sent.

    Parameters
    ----------
    reader : TransferReader
        At the first batch.
    request : SearchRequest
        What was asked for.
    origin : Origin, optional
        Where queries and command come from here; by default what the request says.
    threads : int, optional
        For alignments.
    distribution : bool, optional
        Whether results keep how the whole database scores, where that came; by default they do.
    reopened : callable, optional
        Returns a reader of the same results from the beginning, where this one broke off for a reason.

    Raises
    ------
    ServerError
        If the results are those of another search.
    """

    def __init__(
        self,
        reader: TransferReader,
        request: SearchRequest,
        origin: Origin | None = None,
        threads: int | None = None,
        distribution: bool = True,
        reopened: Callable[[BrokenOffError], TransferReader] | None = None,
    ) -> None:
        header = reader.header
        told, asked = {**header.stated, "sha256": header.sha256}, request_facts(request)
        if any(told.get(name) != asked[name] for name in ("sha256", "query_format", "options")):
            raise reader.wrong("belong to another search")
        queries, options = request.read()
        if (n := len(queries) * options.n_frames) != header.n_queries:
            raise reader.wrong(f"are those of {header.n_queries:,} queries, expected {n:,}")
        distribution = header.distribution and distribution
        options = replace(options, distribution=distribution, keep_next=header.keep_next)
        self._reader, self._reopened, self._header = reader, reopened, header
        super().__init__(
            queries, ReceivedDatabase(header), ServerEngine(header.engine), options,
            threads=threads, origin=origin or request.run_origin,
        )  # fmt: skip

    def _allowed_subjects(self) -> Allowed | None:
        return None  # the server has looked

    @cached_property
    def run(self) -> RunInfo:
        """What reports say of the search: version, engine and database are the server's, all else is of here."""
        found, origin, header = super().run, self._origin, self._header
        return replace(
            found,
            version=header.version,
            execution=Execution(header.engine, origin.command, origin.begun, origin.ended),
            known_checksums=(*query_checksums(origin), *header.checksums),
        )

    def batches(self, aligned: bool = False) -> Generator[list[SearchResult]]:
        """Yield results, some at a time, in query order; see `SearchJob.batches`."""
        self.run, self._by_length  # noqa: B018  # once for all parts
        done = 0
        while True:
            place = 0  # of those that this reader has read
            try:
                for facts, arrays in self._reader.batches():
                    self._check_wanted()
                    n = _size(self._reader, facts)
                    if place + n > len(self.searched):
                        raise self._reader.wrong("contain too many queries")
                    if n % self.options.n_frames:
                        raise self._reader.wrong("lack frames of a query")
                    if place + n > done:
                        made = self._made(self.searched[place : place + n], facts, arrays, aligned)
                        made = made[(done - place) // self.options.n_frames :]
                        done = place + n
                        yield made
                    place += n
                return
            except BrokenOffError as error:
                if self._reopened is None:
                    raise
                self._reader = self._reopened(error)

    def _made(
        self, queries: Sequence[Query], facts: dict[str, Any], arrays: dict[str, NumberArray], aligned: bool
    ) -> list[SearchResult]:
        received = _Received(self, self._reader, queries, facts, arrays)
        part = copy.copy(self)
        part.reader = SubjectReader(
            ReceivedDatabase(self._header, received.subjects()), self.reader.mask, self.reader.recurrence
        )
        for name in ("work", "_maker", "_rater"):
            vars(part).pop(name, None)
        selections = received.selections(part.reader.database)
        results = part.made(received.searched_with(), selections, aligned)
        return received.with_iterations(results)

    @property
    def header(self) -> TransferHeader:
        """What the server says of the search as a whole."""
        return self._header

    def _first_found(self, query: Query, hits: HitList) -> IntArray | None:
        return None  # the server has looked


def query_checksums(origin: Origin) -> list[Checksum]:
    """Return the checksum of the queries: the one that is known, or that of their file."""
    known = checksums(origin.queries, "", ()) if origin.checksums is None else origin.checksums
    return [each for each in known if each.what == "queries"]


def _size(reader: TransferReader, facts: dict[str, Any]) -> int:
    """Return of how many queries a batch holds results."""
    found = facts.get("selections")
    if not isinstance(found, list) or not found:
        raise reader.wrong("hold a batch without results")
    return len(found)


class _Received:
    """A batch, whose parts are checked as they are taken."""

    def __init__(
        self,
        job: ReceivedJob,
        reader: TransferReader,
        queries: Sequence[Query],
        facts: dict[str, Any],
        arrays: dict[str, NumberArray],
    ) -> None:
        self._job, self._reader, self._queries, self._facts, self._arrays = job, reader, queries, facts, arrays
        self._profiles = self._read_profiles()
        self._more = [self._of_query("iterations", place, dict) for place in range(len(queries))]

    def _require(self, good: Any, what: str) -> None:
        if not good:
            raise self._reader.wrong(f"hold {what}")

    def _of_query(self, name: str, place: int, kind: type) -> Any:
        found = self._facts.get(name)
        self._require(isinstance(found, list) and len(found) == len(self._queries), f"no {name} of their queries")
        assert isinstance(found, list)
        self._require(isinstance(found[place], kind), f"no {name} of a query")
        return found[place]

    def _whole(self, name: str) -> IntArray:
        found = self._arrays.get(name)
        self._require(found is not None and found.dtype.kind in "iu", f"no {name}")
        assert found is not None
        return found.astype(np.int64)

    def _offsets(self, name: str, total: int) -> IntArray:
        """Return where each of some parts begins, of their lengths, whose sum is known."""
        lengths = self._whole(name)
        good = not len(lengths) or 0 <= int(lengths.min()) <= int(lengths.max()) <= total
        self._require(good and int(lengths.sum()) == total, f"{name} with a wrong total")
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def _bytes(self, name: str) -> ByteArray:
        found = self._arrays.get(name)
        self._require(found is not None and found.dtype == np.uint8, f"no {name}")
        assert found is not None
        return found

    def subjects(self) -> FoundSubjects:
        """Return the subjects that came."""
        places, codes, headers = self._whole("found"), self._bytes("codes"), self._bytes("headers")
        offsets, ends = self._offsets("found_lengths", len(codes)), self._offsets("header_lengths", len(headers))
        n, database = len(places), self._job.database
        good: Any = len(offsets) == len(ends) == n + 1 and (np.diff(places) > 0).all()
        good = good and (not n or 0 <= places[0] <= places[-1] < database.n_subjects)
        self._require(good, "invalid subjects")
        self._require(np.diff(offsets).max(initial=0) <= database.length_runs.longest, "subjects that are too long")
        self._require(codes.max(initial=0) < len(PROTEIN.letters), "invalid residues")
        self._require(not np.isin(headers, (0x0A, 0x0D, 0)).any(), "headers of several lines")
        taxa = taxa_told(self._arrays, n)
        self._require(taxa is None or len(taxa) == n, "invalid taxa")
        if self._job.reader.mask == "none":
            return FoundSubjects(places, codes, offsets, headers, ends, np.zeros(n + 1, dtype=np.int64), taxa=taxa)
        starts, stops = self._whole("starts"), self._whole("ends")
        of_each = self._offsets("n_runs", len(starts))
        self._require(len(of_each) == n + 1 and len(starts) == len(stops), "masks that do not fit the subjects")
        lengths = np.repeat(np.diff(offsets), np.diff(of_each))
        inside = (starts >= 0) & (starts < stops) & (stops <= lengths)
        follow = np.ones(len(starts), dtype=np.bool_)
        follow[1:] = starts[1:] >= stops[:-1]
        follow[of_each[:-1][np.diff(of_each) > 0]] = True
        self._require((inside & follow).all(), "invalid masks")
        return FoundSubjects(places, codes, offsets, headers, ends, of_each, starts, stops, taxa)

    def selections(self, database: Database) -> list[Selection]:
        """Return what was selected of each query, of subjects that came."""
        try:
            found = put_together(
                self._facts.get("selections"), self._arrays, self._job.options.published, database.n_subjects
            )
        except Unreadable as error:
            raise self._reader.wrong(f"hold invalid selections ({error})") from None
        except KeyError as error:
            raise self._reader.wrong(f"hold no {error}") from None
        for query, selection in zip(self._queries, found, strict=True):
            self._check(query, selection, database)
        return found

    def _check(self, query: Query, selection: Selection, database: Database) -> None:
        """Raise unless a selection can be one of this query in this search."""
        ranked, statistics, nulls = selection.candidates, selection.statistics, selection.nulls
        try:
            lengths = database.lengths_of(ranked.subjects)
        except IndexError:
            raise self._reader.wrong("name missing subjects") from None
        self._require(len(np.unique(ranked.subjects)) == len(ranked), "duplicate subjects")
        self._require(isinstance(selection.reason, str) and isinstance(selection.doubt, str), "invalid notes")
        if isinstance(statistics, FittedStatistics):
            self._require(self._is_null(statistics, query), "statistics of another search")
        if ranked.evalues is not None:
            self._require(statistics is not None and not np.isnan(ranked.evalues).any(), "invalid E-values")
        if nulls is not None:
            fits = len(nulls) == len(ranked) and np.array_equal(nulls.lengths, lengths)
            self._require(fits, "statistics of other subjects")

    def _is_null(self, statistics: FittedStatistics, query: Query) -> bool:
        """Say whether statistics can be those of a query."""
        lengths = statistics.lengths
        return (
            statistics.fit == self._job.method
            and statistics.query_length == len(query.codes)
            and all(isinstance(each, int) for each in lengths)
            and 0 < lengths[0] <= lengths[-1] < 1 << 31
            and all(a < b for a, b in pairwise(lengths))
        )

    # iterations

    def _read_profiles(self) -> list[Profile]:
        lengths, text = self._facts.get("profiles"), self._bytes("profiles").tobytes()
        good = isinstance(lengths, list) and all(isinstance(n, int) and n >= 0 for n in lengths)
        self._require(good and sum(lengths or []) == len(text), "invalid profiles")
        found: list[Profile] = []
        place = 0
        for n in lengths or []:
            try:
                (profile,) = read_json(Text.of(self._reader.where, text[place : place + n]))
            except (InputError, ValueError) as error:
                raise self._reader.wrong(f"hold an invalid profile ({error})") from None
            found.append(profile)
            place += n
        return found

    def _profile(self, place: int, name: str) -> Profile | None:
        """Return a profile of a query; None where it has none."""
        number = self._more[place].get(name)
        if number is None:
            return None
        self._require(isinstance(number, int) and 0 <= number < len(self._profiles), "a missing profile")
        profile: Profile = self._profiles[number]
        query = self._queries[place]
        self._require(len(profile) == len(query.codes), "a profile of another query")
        if profile.alignment is not None:
            subjects = profile.alignment.subjects
            self._require(subjects.max(initial=-1) < self._job.database.n_subjects, "a profile of other subjects")
        return profile

    def searched_with(self) -> list[Query]:
        """Return the queries as they were searched with in their last iteration."""
        if not self._job.options.makes_profiles:
            return list(self._queries)
        return [replace(query, profile=self._profile(k, "profile")) for k, query in enumerate(self._queries)]

    def with_iterations(self, results: Sequence[SearchResult]) -> list[SearchResult]:
        """Add to results what their iterations were."""
        values = self._whole("first_found")
        frames = self._job.options.n_frames
        has_first = [self._of_query("has_first", place * frames, bool) for place in range(len(results))]
        sizes = [len(result.hits) if has else 0 for result, has in zip(results, has_first, strict=True)]
        self._require(sum(sizes) == len(values), "iterations that do not fit their hits")
        firsts = np.split(values, np.cumsum(sizes)[:-1])
        made = []
        for place, (result, first) in enumerate(zip(results, firsts, strict=True)):
            found = replace(result, first_found=first if has_first[place] else None)
            made.append(self._iterated(found, place) if self._job.options.makes_profiles else found)
        return made

    def _iterated(self, result: SearchResult, place: int) -> SearchResult:
        more = self._more[place]
        steps, iteration, converged = more.get("steps"), more.get("iteration"), more.get("converged")
        good = isinstance(steps, list) and isinstance(converged, bool) and isinstance(iteration, int)
        good = good and all(isinstance(step, list) and list(map(type, step)) == [int] * 3 for step in steps)
        self._require(good, "invalid iterations")
        following = result.profile if more.get("next") == more.get("profile") else self._profile(place, "next")
        return replace(
            result,
            iteration=iteration,
            converged=converged,
            steps=tuple(IterationStep(*step) for step in steps),
            next_profile=following,
        )


class ReceivedResults(SearchResults):
    """The results of a search that runs, or ran, on a server; see `SearchResults`.

    Parameters
    ----------
    opened : callable
        Returns the job, from the options that results are to have.
    options : SearchOptions
        What is asked for.
    threads : int, optional
        For alignments.
    close, stop : callable, optional
        Called in the end, and when the search is to end while another thread takes results.
    """

    def __init__(
        self,
        opened: Callable[[SearchOptions], ReceivedJob],
        options: SearchOptions,
        threads: int | None = None,
        close: Callable[[], None] = lambda: None,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin(None, lambda options, _: opened(options), options, threads, close)
        self._stop = stop

    def stop(self) -> None:
        """End the search from another thread than the one that takes results, which raises `Stopped` there."""
        self._stop()
        if (opened := self._search.opened) is not None:
            opened.stop()


def read_transfer(
    stream: FrameSource,
    request: SearchRequest,
    *,
    origin: Origin | None = None,
    threads: int | None = None,
    where: str = "results",
) -> ReceivedResults:
    """Return the results that `swsearch.remote.transfer.write_transfer` sent, which are read as they are taken.

    Parameters
    ----------
    stream : file object
        Open for bytes.
    request : SearchRequest
        The one that they are results of.
    origin : Origin, optional
        Where queries and command come from, for reports; by default what the request says.
    threads : int, optional
        For alignments; one for each processor by default.
    where : str, optional
        What messages call them.

    Raises
    ------
    ServerError
        If they are something else, damaged, cut off, or of another version or search.
    """
    job = ReceivedJob(TransferReader(stream, where), request, origin, threads)
    results = ReceivedResults(lambda _: job, job.options, threads)
    results.job  # noqa: B018  # what can be kept was decided when they were made
    return results
