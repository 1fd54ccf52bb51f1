"""Reports as bytes, of finished jobs and of running searches.

Reports of jobs are read from checkpoints. The reader of a generator drives the work, so memory does not grow with the
results. Closing a generator ends its work.
"""

from __future__ import annotations

import io
import re
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, TypeVar

from swsearch import report
from swsearch.errors import InputError, OptionError, OutputError
from swsearch.pipeline.search import Search
from swsearch.report import headers
from swsearch.report.base import Writer
from swsearch.report.html import HtmlWriter, Link, html_text
from swsearch.report.outputs import JobOutput
from swsearch.results import SearchResult
from swsearch.results.table import shown_hits
from swsearch.run_info import Program, RunInfo
from swsearch.server.databases import ServedDatabase, begin_search
from swsearch.server.errors import ServerProblem
from swsearch.server.job_store import Job, JobStore

PIECE_BYTES = 1 << 16
"""Minimum number of bytes of a piece but the last."""

FASTA_TYPE = "text/x-fasta; charset=utf-8"

FASTA_LINE = 60
"""Residues of a line of FASTA."""

Found = TypeVar("Found")


_TABLE_COLUMNS = {"stitle": "Subject", "bitscore": "Bit score", "evalue": "E-value"}
"""Columns that take no alignments, which would be read twice."""

MAX_TABLE_ROWS = 100
"""Hits of a query in a table for browsers without JavaScript, which all browsers are sent."""


class _PageReport(HtmlWriter):
    """The report on a page of the server, with tables of the hits for browsers without JavaScript."""

    without_script = (
        "Without JavaScript, this page has tables of the best hits. All hits are in Alignments (text), above."
    )

    def write(self, result: SearchResult) -> None:
        """Write the data of one query, and its table."""
        super().write(result)
        rows = io.StringIO()
        table = report.create_writer(f"6 {' '.join(_TABLE_COLUMNS)}", rows)
        table.begin(self._run)
        table.write(result)
        lines = rows.getvalue().splitlines()
        shown = "".join(_row(line.split("\t"), "td") for line in lines[:MAX_TABLE_ROWS])
        heading = html_text(headers.query_title(result))
        head = f"<thead>{_row(_TABLE_COLUMNS.values(), 'th')}</thead>"
        body = f"<table>{head}<tbody>{shown}</tbody></table>" if lines else "<p>No hits.</p>"
        if len(lines) > MAX_TABLE_ROWS:
            body += f"<p>The best {MAX_TABLE_ROWS} of {len(lines):,} hits.</p>"
        self._stream.write(f"<noscript><h2>{heading}</h2>{body}</noscript>\n")


def _row(cells: Iterable[str], kind: str) -> str:
    subject, *numbers = map(html_text, cells)
    cells = [f"<th>{subject}</th>", *(f'<{kind} class="number">{number}</{kind}>' for number in numbers)]
    return f"<tr>{''.join(cells)}</tr>\n"


@dataclass(frozen=True)
class Format:
    """A format of results, as ``--outfmt`` names it; ``bar`` and ``subjects_url`` are those of `HtmlWriter`.

    The constructor raises `OptionError` if there is no such format or column.
    """

    outfmt: str
    bar: Sequence[Link] = ()
    subjects_url: str | None = None
    needs_alignments: bool = field(init=False)
    """Whether it shows alignments."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs_alignments", self.writer(io.StringIO()).needs_alignments)

    @property
    def needs_distribution(self) -> bool:
        """Whether it shows the scores of the whole database."""
        return self.output_format.writer.needs_distribution

    @property
    def output_format(self) -> report.OutputFormat:
        """Row of `swsearch.report.OUTPUT_FORMATS`."""
        return report.find_format(self.outfmt)

    @property
    def media_type(self) -> str:
        """Media type of HTTP."""
        return self.output_format.content_type

    def file_name(self, name: str) -> str:
        """Return a file's name with the extension of the format, of letters, digits, ``.``, ``-`` and ``_``."""
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "results"
        return self.output_format.file_name(stem)

    def writer(self, stream: Any) -> Writer:
        """Return a writer of the format."""
        if self.output_format.key == "html" and (self.bar or self.subjects_url):
            return _PageReport(stream, bar=self.bar, subjects_url=self.subjects_url)
        return report.create_writer(self.outfmt, stream)

    def check(self, n_queries: int, program: Program) -> None:
        """Raise `InputError` if a file of this format cannot hold these queries or results of this program."""
        what, writer = f"format {self.output_format.key}", self.output_format.writer
        writer.check_program(program, what)
        writer.check_queries(n_queries, what)

    def render(self, run: Callable[[], RunInfo], batches: Iterable[list[SearchResult]]) -> Generator[bytes]:
        """Yield the report of results, which must be aligned if the format needs that; ``run`` is called first."""
        buffer = io.BytesIO()
        stream: IO[Any] = buffer
        if not self.output_format.writer.binary:
            stream = io.TextIOWrapper(buffer, "utf-8", "backslashreplace", newline="\n", write_through=True)
        writer = self.writer(stream)

        def taken() -> bytes:
            data = buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
            return data

        try:
            data = run()
            writer.begin(data.with_checksums() if writer.needs_checksums else data)
            for batch in batches:
                for result in batch:
                    writer.write(result)
                    if buffer.tell() >= PIECE_BYTES:
                        yield taken()
            writer.end()
            if rest := taken():
                yield rest
        finally:
            writer.discard()


class StoredResults:
    """Reads what jobs found. Nothing is scored again, however often results are read."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._readers: Counter[str] = Counter()

    def is_read(self, identifier: str) -> bool:
        """Return whether the results of a job are being read."""
        return self._readers[identifier] > 0

    def render(
        self, job: Job, database: ServedDatabase, output_format: Format, queries: tuple[int, int] | None = None
    ) -> Generator[bytes]:
        """Return the results of a job, or of its queries from the first to the last number.

        It raises ``conflict`` unless the job is done, and `InputError` if it has no such queries or the format cannot
        hold them.
        """
        _check_done(job)
        first, last = queries or (1, job.n_queries)
        if not 1 <= first <= last <= job.n_queries:
            raise OptionError("queries", f"{first}-{last}", f"a range within 1-{job.n_queries:,}")
        output_format.check(last - first + 1, job.program(database.is_dna))
        return self._render(job, database, output_format, first - 1, last - first + 1)

    def _render(
        self, job: Job, database: ServedDatabase, output_format: Format, first: int, count: int
    ) -> Generator[bytes]:
        with self._open_job(job, database, output_format.needs_distribution) as search:
            stored = self._readable(job, search.stored_results(first, count, output_format.needs_alignments))
            yield from output_format.render(lambda: search.run, stored)

    def output(self, job: Job, number: int) -> tuple[JobOutput, int]:
        """Return a file of a job and its size in bytes.

        It raises ``conflict`` unless the job is done, ``not_found`` if it has no such file.
        """
        _check_done(job)
        outputs = self._store.outputs_of(job)
        if number >= len(outputs):
            raise ServerProblem("not_found", f"job {job.identifier}: no output {number}, it has {len(outputs)}")
        with self._job_problems(job):
            return outputs[number], outputs[number].path.stat().st_size

    def part(self, job: Job, output: JobOutput, part: range) -> Generator[bytes]:
        """Yield some bytes of a file of a job, which may be removed meanwhile."""
        with self._job_problems(job), output.path.open("rb") as file:
            file.seek(part.start)
            for at in range(0, len(part), PIECE_BYTES):
                yield file.read(min(PIECE_BYTES, len(part) - at))

    def subjects(self, job: Job, database: ServedDatabase, query: int, hits: Sequence[int]) -> Generator[bytes]:
        """Return the whole subjects of some hits as FASTA, one at a time; query and hits are numbers from 1.

        It raises ``conflict`` unless the job is done, and `OptionError` if it has no such query or hit.
        """
        _check_done(job)
        if not 1 <= query <= job.n_queries:
            raise OptionError("query", query, f"1 to {job.n_queries:,}")
        return self._subjects(job, database, query, hits)

    def _subjects(self, job: Job, database: ServedDatabase, query: int, hits: Sequence[int]) -> Generator[bytes]:
        with self._open_job(job, database) as search:
            ((result,),) = self._readable(job, search.stored_results(query - 1, 1))
            subjects = shown_hits(result.table).record_places.tolist()
        for hit in hits:
            if not 1 <= hit <= len(subjects):
                expected = f"1 to {len(subjects):,}" if subjects else "none, for the query has no hits"
                raise OptionError("hits", hit, expected)
        for hit in hits:
            subject = subjects[hit - 1]
            yield fasta(database.database.header(subject), database.database.sequence(subject))

    @contextmanager
    def _open_job(self, job: Job, database: ServedDatabase, distribution: bool = False) -> Iterator[Search]:
        """Open the search of a job to be read, and count a reader meanwhile."""
        with self._guard:
            self._readers[job.identifier] += 1
        try:
            with self._job_problems(job):
                request = self._store.request(job.identifier)
                origin = database.origin(request, job.submitted, job.ended)
                results = begin_search(
                    database.backend, *request.read_queries(), keep_distribution=distribution, origin=origin
                )
                search = results.search
                search.use_checkpoint(self._store.checkpoint_of(job.identifier), is_read_only=True)
            with closing(search):
                yield search
        finally:
            with self._guard:
                self._readers[job.identifier] -= 1
                self._readers += Counter()  # drops zeros

    def _readable(self, job: Job, items: Iterator[Found]) -> Generator[Found]:
        """Yield what a checkpoint holds."""
        with self._job_problems(job):
            yield from items

    @contextmanager
    def _job_problems(self, job: Job) -> Iterator[None]:
        """Turn errors of reading a checkpoint into problems of its job."""
        try:
            yield
        except ServerProblem:
            raise
        except InputError as error:
            why = "the database or the version of swsearch is another one since"
            message = f"job {job.identifier}: what it found cannot be read: {why}; submit it again"
            raise ServerProblem("expired", message) from error
        except (OutputError, OSError) as error:
            self._store.job(job.identifier)  # raises if the job was removed while it was read
            message = f"job {job.identifier}: what it found is damaged or gone from the disk; submit it again"
            raise ServerProblem("failed", message) from error


def _check_done(job: Job) -> None:
    if job.state == "done":
        return
    what = f"is {job.state}" if job.state in ("queued", "running") else f"has {job.state}"
    what = "was cancelled" if job.state == "cancelled" else what
    retry_after = None if job.is_ended else 1
    raise ServerProblem("conflict", f"job {job.identifier} {what}, and has no results", retry_after=retry_after)


def fasta(header: bytes, letters: str) -> bytes:
    """Return a record of FASTA."""
    lines = [letters[at : at + FASTA_LINE] for at in range(0, len(letters), FASTA_LINE)]
    return b">" + header + b"\n" + "".join(f"{line}\n" for line in lines).encode("ascii")
