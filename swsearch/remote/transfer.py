"""The hits of a search as bytes and back: what was found of each query, with its subjects.

Whoever reads them aligns the hits and writes reports as if the search had run there; `swsearch.remote.received` does.
Bytes are checked: they may come from a server of another version, or from none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from swsearch.blocks import IntArray, RunLengths
from swsearch.db.stored import is_source
from swsearch.errors import ServerError, shown
from swsearch.options.words import MASKS
from swsearch.pipeline.batch import Batch
from swsearch.pipeline.codec import encode
from swsearch.pipeline.description import SubjectDescription
from swsearch.pipeline.groups import split_by_size
from swsearch.pipeline.number_arrays import MAX_MAGNITUDE, NumberArray, narrowed
from swsearch.pipeline.search import Search
from swsearch.pipeline.subjects import SubjectCounts
from swsearch.remote.frames import MAGIC, FrameKind, FrameSource, check_of, frame, frames
from swsearch.remote.wire import SearchRequest
from swsearch.run_info import Checksum
from swsearch.translation.codes import genetic_codes
from swsearch.version import version

TRANSFER_VERSION = 2
"""Of the form of results; of any other one they are not read."""

RESIDUES_OF_FRAME = 4 << 20
"""Residues of subjects that are sent at a time, those of whole queries."""

MOST_TEXT = 1 << 16
"""Characters of a name or a description in the header."""

MOST_COUNT = 1 << 53
"""Subjects and residues that a database can say it has: JSON holds them exactly."""

Fact = TypeVar("Fact")

COUNTS = ("n_records", "n_letters", "n_subjects", "residues", "published_residues", "longest")
"""Counts of `SubjectCounts` in the header."""


# what is sent


def write_transfer(
    search: Search, batches: Iterable[Batch], request: SearchRequest, told: Callable[[BaseException], str]
) -> Generator[bytes]:
    """Yield the hits of a search as bytes.

    Parameters
    ----------
    search : Search
        The search.
    batches : iterable of Batch
        Its hits, in query order: `Search.batches`, which runs as they are taken, or `Search.stored_batches`.
    request : SearchRequest
        What was asked for.
    told : callable
        Returns what whoever reads is told of an error.

    Raises
    ------
    SwsearchError
        If the search fails; whoever reads has been told then.
    """
    yield MAGIC
    before = n_states = 0

    def made(kind: FrameKind, facts: Any, arrays: Mapping[str, NumberArray] | None = None) -> bytes:
        nonlocal before
        found = frame(kind, facts, arrays, before)
        before = check_of(found)
        return found

    try:
        yield made("header", *_header(search, request))
        for batch in batches:
            sizes = [int(batch.subjects.lengths_of(each.candidates.subjects).sum()) for each in batch.selections]
            for part in split_by_size(sizes, RESIDUES_OF_FRAME, search.options.n_frames):
                n_states += part.stop - part.start
                yield made("batch", *encode(batch.states[part], batch.subjects, with_subjects=True))
    except GeneratorExit:
        raise
    except BaseException as error:
        yield made("problem", {"message": told(error)})
        raise
    yield made("end", {"states": n_states})


def request_facts(request: SearchRequest) -> dict[str, Any]:
    """Return a request as a header holds it: of its queries the checksum."""
    stated = request.stated()
    del stated["queries"]
    return stated | {"sha256": hashlib.sha256(request.queries).hexdigest()}


def _header(search: Search, request: SearchRequest) -> tuple[dict[str, Any], dict[str, NumberArray]]:
    run, options, counts = search.run, search.options, search.criteria.counts
    described = SubjectDescription.of(search.subjects)
    assert run.execution is not None
    facts = {
        "transfer": TRANSFER_VERSION,
        "version": run.version,
        "request": request_facts(request),
        "states": len(search.searched),
        "residues": search.subjects.n_residues,
        "distribution": options.distribution,
        "keep_next": options.keep_next,
        "engine": run.execution.engine,
        "checksums": [
            [each.what, each.path, each.sha256] for each in run.known_checksums or () if each.what != "queries"
        ],
        "database": vars(described) | {name: getattr(counts, name) for name in (*COUNTS, "are_windows")},
    }
    nothing: IntArray = np.empty(0, dtype=np.int64)
    runs = RunLengths.of(nothing) if counts.are_windows else search.subjects.length_runs  # distributions need them
    lengths: dict[str, NumberArray] = {
        "run_lengths": runs.values, "run_counts": runs.counts,
        "lengths": counts.lengths, "published_lengths": counts.published_lengths,
    }  # fmt: skip
    return facts, {name: narrowed(each.astype(np.int64)) for name, each in lengths.items()}


# what is received


@dataclass(frozen=True, eq=False)
class TransferHeader:
    """What stands before the hits of a search.

    Parameters
    ----------
    version : str
        The swsearch that searched.
    asked : dict of str to object
        The request, as `request_facts` makes it.
    n_states : int
        How many queries there are, frames of DNA counted each.
    n_residues : int
        Residues that each was scored with.
    distribution, keep_next : bool
        What results keep.
    engine : str
        What scored.
    checksums : tuple of Checksum
        Of the database.
    described : SubjectDescription
        What reports say of the subjects.
    counts : SubjectCounts
        Their counts.
    length_runs : RunLengths
        How many of what is scored have each length.
    """

    version: str
    asked: dict[str, Any]
    n_states: int
    n_residues: int
    distribution: bool
    keep_next: bool
    engine: str
    checksums: tuple[Checksum, ...]
    described: SubjectDescription
    counts: SubjectCounts
    length_runs: RunLengths

    def request(self, queries: bytes) -> SearchRequest:
        """Return the request, given its queries."""
        stated = {name: value for name, value in self.asked.items() if name != "sha256"}
        return replace(SearchRequest.of({**stated, "queries": ""}), queries=queries)


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
        n_states = 0
        for kind, facts, arrays in self._frames:
            self._raise_problem(kind, facts)
            if kind == "header" or not isinstance(facts, dict):
                raise self.wrong("contain an unexpected frame")
            if kind == "batch":
                states = facts.get("states")
                n_states += len(states) if isinstance(states, list) else 0
                yield facts, arrays
            elif facts.get("states") != n_states or n_states != self.header.n_states:
                raise self.wrong(f"are those of {n_states:,} queries, expected {self.header.n_states:,}")


class _Checked:
    """The facts and arrays of a header, checked as they are taken."""

    def __init__(self, reader: TransferReader, facts: Any, arrays: Mapping[str, NumberArray]) -> None:
        self._reader, self._facts, self._arrays = reader, facts, arrays

    def _wrong(self, name: str, expected: str) -> ServerError:
        return self._reader.wrong(f"{name}: got {shown(self._facts.get(name))}, expected {expected}")

    def take(
        self, name: str, kind: type[Fact], expected: str, is_good: Callable[[Any], bool] = lambda _: True
    ) -> Fact:
        """Return a fact; raise unless it is of a kind and good."""
        value = self._facts.get(name)
        if type(value) is not kind or not is_good(value):
            raise self._wrong(name, expected)
        return value

    def text(self, name: str, longest: int = MOST_TEXT) -> str:
        return self.take(name, str, f"a text of at most {longest:,} characters", lambda value: len(value) <= longest)

    def count(self, name: str) -> int:
        return self.take(name, int, "a count", lambda value: 0 <= value <= MOST_COUNT)

    def flag(self, name: str) -> bool:
        return self.take(name, bool, "true or false")

    def part(self, name: str) -> _Checked:
        return _Checked(self._reader, self.take(name, dict, "an object"), self._arrays)

    def header(self) -> TransferHeader:
        """Return the header."""
        if not isinstance(self._facts, dict):
            raise self._reader.wrong("have an invalid header")
        self._check_version()
        database, request = self.part("database"), self.part("request")
        counts = database._counts()
        request.text("sha256", 64)
        checksums = self.take(
            "checksums", list, "a list of what, name and checksum",
            lambda given: all(isinstance(each, list) and list(map(type, each)) == [str] * 3 for each in given),
        )  # fmt: skip
        return TransferHeader(
            self.text("version"), request._facts, self.count("states"), self.count("residues"),
            self.flag("distribution"), self.flag("keep_next"), self.text("engine"),
            tuple(Checksum(*each) for each in checksums), database._described(counts.are_windows), counts,
            self._length_runs(counts),
        )  # fmt: skip

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

    def _described(self, is_dna: bool) -> SubjectDescription:
        mask, code = self._facts.get("mask"), self._facts.get("genetic_code")
        expected = "a list of files with their checksums"
        sources = self.take("sources", list, expected, lambda given: all(map(is_source, given)))
        if mask not in MASKS:
            raise self._wrong("mask", f"one of {', '.join(MASKS)}")
        if (type(code) is int and code in genetic_codes()) != is_dna or (not is_dna and code is not None):
            raise self._wrong("genetic_code", "one of DNA, and none of proteins")
        return SubjectDescription(self.text("name"), mask, tuple(sources), code)

    def _counts(self) -> SubjectCounts:
        counts = {name: self.count(name) for name in COUNTS}
        if counts["longest"] >= MAX_MAGNITUDE:
            raise self._wrong("longest", f"less than {MAX_MAGNITUDE:,}")
        lengths, published = (self._lengths(name) for name in ("lengths", "published_lengths"))
        for each in (lengths, published):
            if not ((np.diff(each) > 0).all() and each.min(initial=1) > 0):
                raise self._reader.wrong("contain no lengths of the database's subjects")
        if not self.flag("are_windows") and lengths.max(initial=0) != counts["longest"]:
            raise self._reader.wrong("contain other subject lengths than the database")
        return SubjectCounts(
            **counts, lengths=lengths.astype(np.int32), published_lengths=published.astype(np.int32),
            are_windows=self.flag("are_windows"),
        )  # fmt: skip

    def _lengths(self, name: str) -> IntArray:
        found = self._arrays.get(name)
        if found is None or found.dtype.kind not in "iu":
            raise self._reader.wrong("lack the lengths of the database's subjects")
        lengths = found.astype(np.int64)
        if not 0 <= lengths.min(initial=0) <= lengths.max(initial=0) < MAX_MAGNITUDE:
            raise self._reader.wrong("contain invalid lengths")
        return lengths

    def _length_runs(self, told: SubjectCounts) -> RunLengths:
        """Return how many of what is scored have each length: of proteins, as the counts have it."""
        lengths, counts = self._lengths("run_lengths"), self._lengths("run_counts")
        good: Any = len(lengths) == len(counts) and (np.diff(lengths) < 0).all() and (counts > 0).all()
        # floats cannot overflow, and what agrees in them is summed exactly afterwards
        good = good and float(counts.astype(np.float64) @ lengths.astype(np.float64)) < 2.0 * MOST_COUNT
        if good and not told.are_windows:
            good = int(counts.sum()) == told.n_records and int(counts @ lengths) == told.residues == told.n_letters
        if not good:
            raise self._reader.wrong("contain other subject lengths than the database")
        return RunLengths(lengths.astype(np.int32), np.cumsum(counts))
