"""The results of a search as bytes and back: what was selected of each query, and the subjects that were found.

Whoever reads them aligns the hits and writes reports as if the search had run there; `swsearch.remote.received` does.
Bytes are checked: they may come from a server of another version, or from none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swsearch.blocks import IntArray, RunLengths
from swsearch.db.stored import is_source
from swsearch.errors import ServerError, SwsearchError, shown
from swsearch.options.words import MASKS, Mask
from swsearch.pipeline.candidate_codec import narrowed, taken_apart
from swsearch.pipeline.prefetch import Stopped
from swsearch.pipeline.ranking import Ranked
from swsearch.pipeline.search_job import SearchJob
from swsearch.pipeline.search_results import SearchResults
from swsearch.pipeline.selection import Selection
from swsearch.profiles.profile import Profile
from swsearch.profiles.saving import line_of
from swsearch.remote.frames import MAGIC, FrameKind, FrameSource, NumberArray, check_of, frame, frames
from swsearch.remote.taxa import told_taxa
from swsearch.remote.wire import SearchRequest
from swsearch.results import HitList, SearchResult
from swsearch.run_info import Checksum
from swsearch.statistics.observed import ScoreCounts
from swsearch.version import version

TRANSFER_VERSION = 1
"""Of the form of results; of any other one they are not read."""

RESIDUES_OF_FRAME = 4 << 20
"""Residues of subjects that are sent at a time, those of whole queries."""

MOST_TEXT = 1 << 16
"""Characters of a name or a description in the header."""

MOST_COUNT = 1 << 53
"""Subjects and residues that a database can say it has: JSON holds them exactly."""


# what is sent


def message_of(error: BaseException) -> str:
    """Return what whoever reads results is told of an error that ended them."""
    if isinstance(error, SwsearchError):
        return str(error)
    return "the search was stopped" if isinstance(error, Stopped) else "the server failed; its log says more"


def write_transfer(
    results: SearchResults, request: SearchRequest, told: Callable[[BaseException], str] = message_of
) -> Generator[bytes]:
    """Yield the results of a search as bytes; the search runs as they are taken.

    Parameters
    ----------
    results : SearchResults
        None of them was taken yet.
    request : SearchRequest
        What was asked for.
    told : callable, optional
        Returns what whoever reads is told of an error.

    Raises
    ------
    SwsearchError
        If the search fails; whoever reads has been told then.
    """
    yield MAGIC
    before = n_results = n_hits = 0

    def made(kind: FrameKind, facts: Any, arrays: Mapping[str, NumberArray] | None = None) -> bytes:
        nonlocal before
        found = frame(kind, facts, arrays, before)
        before = check_of(found)
        return found

    try:
        job = results.job
        yield made("header", *_header(job, request))
        for batch in results.batches(several=False):
            for some in _parts(batch):
                n_results = n_results + len(some) * job.options.n_frames
                n_hits += sum(len(result.hits) for result in some)
                yield made("batch", *_batch(job, some))
    except GeneratorExit:
        raise
    except BaseException as error:
        yield made("problem", {"message": told(error)})
        raise
    yield made("end", {"results": n_results, "hits": n_hits})


def request_facts(request: SearchRequest) -> dict[str, Any]:
    """Return a request as a header holds it: of its queries the checksum."""
    stated = request.stated()
    del stated["queries"]
    return stated | {"sha256": hashlib.sha256(request.queries).hexdigest()}


def _header(job: SearchJob, request: SearchRequest) -> tuple[dict[str, Any], dict[str, NumberArray]]:
    database, run, options = job.database, job.run, job.options
    assert run.execution is not None
    known = run.known_checksums or ()
    facts = {
        "transfer": TRANSFER_VERSION,
        "version": run.version,
        "request": request_facts(request),
        "queries": len(job.searched),
        "distribution": options.distribution,
        "keep_next": options.keep_next,
        "engine": run.execution.engine,
        "checksums": [[each.what, each.path, each.sha256] for each in known if each.what != "queries"],
        "database": {
            "name": database.name,
            "subjects": database.n_subjects,
            "residues": database.n_residues,
            "mask": database.mask,
            "sources": database.sources(),
        },
    }
    runs = database.length_runs
    return facts, {"lengths": narrowed(runs.values.astype(np.int64)), "counts": narrowed(runs.counts)}


def _parts(batch: Sequence[SearchResult]) -> Iterator[Sequence[SearchResult]]:
    """Cut results into runs of about `RESIDUES_OF_FRAME`."""
    begin = residues = 0
    for place, result in enumerate(batch):
        size = int(result.table.subject_lengths.sum())
        if place > begin and residues + size > RESIDUES_OF_FRAME:
            yield batch[begin:place]
            begin, residues = place, 0
        residues += size
    if begin < len(batch):
        yield batch[begin:]


def _batch(job: SearchJob, results: Sequence[SearchResult]) -> tuple[dict[str, Any], dict[str, NumberArray]]:
    selections, arrays = taken_apart([each for result in results for each in _selections(result)])
    subjects = np.unique(np.concatenate([result.table.subjects for result in results]))
    arrays |= _subjects(job, subjects)
    lines: list[bytes] = []
    more = [_iterations(result, lines) if job.options.makes_profiles else {} for result in results]
    frames = range(job.options.n_frames)  # each of which has an entry, as in the selections
    first = [result.first_found for result in results]
    known = [each for each in first if each is not None]
    arrays["first_found"] = narrowed(np.concatenate([np.zeros(0, dtype=np.int64), *known]))
    arrays["profiles"] = np.frombuffer(b"".join(lines), dtype=np.uint8)
    facts = {
        "selections": selections,
        "iterations": [each for each in more for _ in frames],
        "has_first": [each is not None for each in first for _ in frames],
        "profiles": [len(line) for line in lines],
    }
    return facts, arrays


def _selections(result: SearchResult) -> list[Selection]:
    """Return the hits of a query as what is selected: all of them, and nothing else; of DNA one for each frame."""
    hits, table, counted = result.hits, result.table, result.distribution
    assert isinstance(hits, HitList)
    counts = None if counted is None else ScoreCounts(counted.scores, counted.counts)
    evalues = None if result.statistics is None else table.numbers.evalues
    everything = Ranked(table.scores, table.subjects, evalues)
    whole = Selection(
        everything, max(1, len(hits)), result.statistics, result.no_statistics, counts, hits.nulls, result.doubt
    )
    if table.query_frames is None:
        return [whole]
    found = []
    for place, (statistics, nulls) in enumerate(hits.frame_statistics):
        rows = np.flatnonzero(table.query_frames == place)
        rated = None if evalues is None or statistics is None else evalues[rows]
        ranked = Ranked(table.scores[rows], table.subjects[rows], rated)
        found.append(replace(whole, candidates=ranked, statistics=statistics, nulls=nulls))
    return [found[0], *(replace(each, distribution=None, doubt="") for each in found[1:])]


def _subjects(job: SearchJob, subjects: IntArray) -> dict[str, NumberArray]:
    """Return subjects, each once and ascending, with what a report of theirs needs."""
    database, mask = job.database, job.reader.mask
    codes, offsets = database.codes_of(subjects)
    headers, header_offsets = database.headers_of(subjects)
    found: dict[str, NumberArray] = {
        "found": narrowed(subjects),
        "found_lengths": narrowed(np.diff(offsets)),
        "codes": codes,
        "headers": headers,
        "header_lengths": narrowed(np.diff(header_offsets)),
    }
    if database.has_taxa:
        found |= told_taxa(database.taxa_of(subjects))
    if mask != "none":
        of_each, starts, ends = database.masked_of(subjects, mask)
        runs = {"n_runs": np.diff(of_each), "starts": starts.astype(np.int64), "ends": ends.astype(np.int64)}
        found |= {name: narrowed(values) for name, values in runs.items()}
    return found


def _iterations(result: SearchResult, lines: list[bytes]) -> dict[str, Any]:
    """Return what iterations say of a result; profiles go to the lines."""

    def placed(profile: Profile | None) -> int | None:
        if profile is None:
            return None
        lines.append(line_of(profile).encode("ascii"))
        return len(lines) - 1

    used = placed(result.profile)
    return {
        "iteration": result.iteration,
        "converged": result.converged,
        "steps": [[step.iteration, step.included, step.new] for step in result.steps],
        "profile": used,
        "next": used if result.next_profile is result.profile else placed(result.next_profile),
    }


# what is received


@dataclass(frozen=True, eq=False)
class TransferHeader:
    """What stands before the results of a search.

    Parameters
    ----------
    version : str
        The swsearch that searched.
    stated : dict of str to object
        The request, as `SearchRequest.of` takes it, but for the queries.
    sha256 : str
        Of the queries.
    n_queries : int
        How many there are, frames of DNA counted each.
    distribution, keep_next : bool
        What results keep.
    engine : str
        What scored.
    checksums : tuple of Checksum
        Of the database.
    name : str
        What the database is called.
    n_subjects, n_residues : int
        Its size.
    mask : str
        What it was built to mask.
    sources : tuple of dict
        As `Database.sources` has them.
    length_runs : RunLengths
        How many subjects have each length.
    """

    version: str
    stated: dict[str, Any]
    sha256: str
    n_queries: int
    distribution: bool
    keep_next: bool
    engine: str
    checksums: tuple[Checksum, ...]
    name: str
    n_subjects: int
    n_residues: int
    mask: Mask
    sources: tuple[dict[str, Any], ...]
    length_runs: RunLengths

    def request(self, queries: bytes) -> SearchRequest:
        """Return the request, given its queries."""
        return replace(SearchRequest.of({**self.stated, "queries": ""}), queries=queries)


class TransferReader:
    """Reads the results of a search: first `header`, then `batches`, once.

    Parameters
    ----------
    stream : file object
        Of bytes that `write_transfer` made.
    where : str, optional
        What messages call it.

    Raises
    ------
    ServerError
        If it holds something else, or what another version made.
    """

    def __init__(self, stream: FrameSource, where: str = "results") -> None:
        self.where = where
        self._frames = frames(stream, where)
        kind, facts, arrays = next(self._frames)
        self._raise_problem(kind, facts)
        if kind != "header":
            raise self.wrong("do not begin with their header")
        self.header = _Checked(self, facts, arrays).header()

    def wrong(self, what: str) -> ServerError:
        """Return an error that says what is wrong with the results."""
        return ServerError(f"{self.where}: {what}; the server may be of another version than {version()}")

    def _raise_problem(self, kind: FrameKind, facts: Any) -> None:
        if kind == "problem":
            message = facts.get("message") if isinstance(facts, dict) else None
            raise ServerError(f"{self.where}: {_Checked(self, {'message': message}, {}).text('message')}")

    def batches(self) -> Iterator[tuple[dict[str, Any], dict[str, NumberArray]]]:
        """Yield facts, and arrays of shape (n,) by name, of some queries at a time, in query order.

        Raises
        ------
        ServerError
            If what comes is damaged or ends early, or the server failed.
        """
        n_results = 0
        for kind, facts, arrays in self._frames:
            self._raise_problem(kind, facts)
            if kind == "header" or not isinstance(facts, dict):
                raise self.wrong("contain an unexpected frame")
            if kind == "batch":
                selections = facts.get("selections")
                n_results += len(selections) if isinstance(selections, list) else 0
                yield facts, arrays
            elif facts.get("results") != n_results or n_results != self.header.n_queries:
                raise self.wrong(f"are those of {n_results:,} queries, expected {self.header.n_queries:,}")


class _Checked:
    """The facts and arrays of a header, checked as they are taken."""

    def __init__(self, reader: TransferReader, facts: Any, arrays: Mapping[str, NumberArray]) -> None:
        self._reader, self._facts, self._arrays = reader, facts, arrays

    def _wrong(self, name: str, expected: str) -> ServerError:
        return self._reader.wrong(f"{name}: got {shown(self._facts.get(name))}, expected {expected}")

    def text(self, name: str, longest: int = MOST_TEXT) -> str:
        value = self._facts.get(name)
        if not isinstance(value, str) or len(value) > longest:
            raise self._wrong(name, f"a text of at most {longest:,} characters")
        return value

    def count(self, name: str) -> int:
        value = self._facts.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_COUNT:
            raise self._wrong(name, "a count")
        return value

    def flag(self, name: str) -> bool:
        value = self._facts.get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def part(self, name: str) -> _Checked:
        value = self._facts.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return _Checked(self._reader, value, self._arrays)

    def header(self) -> TransferHeader:
        """Return the header."""
        if not isinstance(self._facts, dict):
            raise self._reader.wrong("have an invalid header")
        self._check_version()
        database, request = self.part("database"), self.part("request")
        sha256 = request.text("sha256", 64)
        mask = database.text("mask")
        if mask not in MASKS:
            raise database._wrong("mask", f"one of {', '.join(MASKS)}")
        n_subjects, n_residues = database.count("subjects"), database.count("residues")
        return TransferHeader(
            self.text("version"),
            {name: value for name, value in request._facts.items() if name != "sha256"},
            sha256,
            self.count("queries"),
            self.flag("distribution"),
            self.flag("keep_next"),
            self.text("engine"),
            self._checksums(),
            database.text("name"),
            n_subjects,
            n_residues,
            mask,
            database._sources(),
            self._length_runs(n_subjects, n_residues),
        )

    def _check_version(self) -> None:
        found = self._facts.get("transfer")
        if found == TRANSFER_VERSION:
            return
        theirs = self._facts.get("version")
        other = theirs if isinstance(theirs, str) and len(theirs) < 50 else "of an unknown version"
        raise ServerError(
            f"{self._reader.where}: got results of swsearch {other}, expected those of {version()}; install the same "
            "version on both sides"
        )

    def _checksums(self) -> tuple[Checksum, ...]:
        given = self._facts.get("checksums")
        if not isinstance(given, list) or not all(
            isinstance(each, list) and list(map(type, each)) == [str] * 3 for each in given
        ):
            raise self._wrong("checksums", "a list of what, name and checksum")
        return tuple(Checksum(*each) for each in given)

    def _sources(self) -> tuple[dict[str, Any], ...]:
        given = self._facts.get("sources")
        if not isinstance(given, list) or not all(is_source(each) for each in given):
            raise self._wrong("sources", "a list of files with their checksums")
        return tuple(given)

    def _length_runs(self, n_subjects: int, n_residues: int) -> RunLengths:
        found = [self._arrays.get(name) for name in ("lengths", "counts")]
        if any(each is None or each.dtype.kind not in "iu" for each in found):
            raise self._reader.wrong("lack the lengths of the database's subjects")
        lengths, counts = (each.astype(np.int64) for each in found if each is not None)
        good: Any = len(lengths) == len(counts) and (np.diff(lengths) < 0).all() and (counts > 0).all()
        good = good and 0 <= lengths.min(initial=0) <= lengths.max(initial=0) < 1 << 31
        good = good and counts.max(initial=0) <= n_subjects
        # floats cannot overflow, and what agrees in them is summed exactly afterwards
        good = good and float(counts.astype(np.float64) @ lengths.astype(np.float64)) < 2.0 * MOST_COUNT
        if not good or int(counts.sum()) != n_subjects or int(counts @ lengths) != n_residues:
            raise self._reader.wrong("contain other subject lengths than the database")
        return RunLengths(lengths.astype(np.int32), np.cumsum(counts))
