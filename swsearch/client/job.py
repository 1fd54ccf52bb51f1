"""A job on a server with its results: files, tables and hits."""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.client.connection import Connection
from swsearch.client.search_request import options_from_json
from swsearch.engines.base import Progress
from swsearch.errors import InputError, ServerError
from swsearch.options.kinds import JOB_STATES, JobState
from swsearch.output_files import open_outputs
from swsearch.scoring import Scoring
from swsearch.translation.genetic_codes import CODON, Frame

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from Bio.Align import Alignment
    from matplotlib.axes import Axes


class JobHit:
    """A hit, or one of its alignments: the members of ``jsonl`` are attributes, e.g. ``score`` and ``cigar``.

    The members of ``subject`` are ``subject_id``, ``subject_description``, ``subject_length`` and so on.

    Parameters
    ----------
    data : dict
        The hit, as the format has it.
    result : JobResult
        The result that it is part of.
    """

    def __init__(self, data: dict[str, Any], result: JobResult) -> None:
        self.data = {**{f"subject_{name}": value for name, value in data["subject"].items()}, **data}
        self._result = result
        self.query_id, self.query_length = result.query_id, result.query_length

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get("data", {})  # a copy has none at first
        if name not in data:
            raise AttributeError(f"this hit has no {name!r}, only {', '.join(data)}")
        return data[name]

    def __repr__(self) -> str:
        return f"<JobHit {self.subject_id}: score {self.score}>"

    @property
    def hsps(self) -> list[JobHit]:
        """Its alignments, the best first."""
        others = self.data.get("further_alignments", ())
        return [self, *(JobHit({"subject": self.subject, **each}, self._result) for each in others)]

    @property
    def query_range(self) -> tuple[int, int]:
        """Aligned part of the query, 0-based half-open, in nucleotides where it is DNA."""
        return self.query_start, self.query_end

    @property
    def subject_range(self) -> tuple[int, int]:
        """Aligned part of the subject, likewise."""
        return self.subject_start, self.subject_end

    @property
    def query_frame(self) -> Frame | None:
        """Frame of the query's aligned part; None for protein."""
        return _frame(self.data.get("query_frame"), self.query_length, *self.query_range)

    @property
    def subject_frame(self) -> Frame | None:
        """Frame of the subject's aligned part; None for protein."""
        return _frame(self.data.get("subject_frame"), self.subject_length, self.subject_start, self.subject_end)

    @cached_property
    def pair(self) -> PairAlignment:
        """The alignment. A protein is X outside its aligned part; of DNA it has the aligned part alone.

        Raises
        ------
        InputError
            If the alignment has frameshifts.
        """
        if not re.fullmatch("(?:[0-9]+[MID])*", self.cigar):
            raise InputError(f"{self.subject_id}: got an alignment with frameshifts; take its query_row, subject_row")
        cigar = tuple((int(n), operation) for n, operation in re.findall("([0-9]+)([MID])", self.cigar))
        query, query_letters, query_start = self._side("query", self.query_frame)
        subject, subject_letters, subject_start = self._side("subject", self.subject_frame)
        return PairAlignment(
            query, subject, self._result.scoring, self.score, query_start, subject_start, cigar, query_letters,
            subject_letters,
        )  # fmt: skip

    def _side(self, side: str, frame: Frame | None) -> tuple[ByteArray, ByteArray, int]:
        """Return codes and letters of a sequence, each of shape (n,), and its first aligned residue."""
        row = getattr(self, f"{side}_row").replace("-", "")
        before = getattr(self, f"{side}_start") if frame is None else 0
        length = getattr(self, f"{side}_length") if frame is None else len(row)
        text = f"{'X' * before}{row}".ljust(length, "X")
        codes = self._result.scoring.matrix.alphabet.encode(re.sub("[a-z]", "X", text))  # masked residues
        return codes, np.frombuffer(text.encode("ascii"), dtype=np.uint8), before

    @property
    def alignment(self) -> Alignment:
        """The alignment as a Bio.Align.Alignment, whose target is the subject; see `pair`."""
        return self.pair.to_biopython(self.query_id, self.subject_id)

    def plot_dots(self, ax: Axes | None = None, *, window: int = 11, threshold: int | None = None) -> Axes:
        """Draw a dot plot of the aligned parts; see `swsearch.plots.plot_dots`."""
        from swsearch.plots import plot_dots

        return plot_dots(self, ax, window=window, threshold=threshold)


def _frame(number: int | None, dna_length: int, begin: int, end: int) -> Frame | None:
    """Return the frame, of which codons before the aligned part are left out."""
    if number is None:
        return None
    before = begin if number > 0 else dna_length - end
    return Frame(number, dna_length, (before - (abs(number) - 1)) // CODON)


class JobResult:
    """The hits of a query; ``data`` is the object that the format ``jsonl`` has of it.

    Parameters
    ----------
    data : dict
        That object.
    scoring : Scoring
        Scoring of the search.
    """

    distribution = None
    """Scores of the whole database: in the report of ``html``."""

    def __init__(self, data: dict[str, Any], scoring: Scoring) -> None:
        self.data, self.scoring = data, scoring
        query, program = data["query"], data["parameters"].get("program", "blastp")
        self.query_id, self.query_description, self.query_length = query["id"], query["description"], query["length"]
        self.has_query_frames = program in ("blastx", "tblastx")
        self.hits = [JobHit(each, self) for each in data["hits"]]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[JobHit]:
        return iter(self.hits)

    def __repr__(self) -> str:
        return f"<JobResult {self.query_id}: {len(self.hits):,} hits>"

    def plot_coverage(self, ax: Axes | None = None, *, max_hits: int = 100) -> Axes:
        """Draw where the hits lie along the query; see `swsearch.plots.plot_coverage`."""
        from swsearch.plots import plot_coverage

        return plot_coverage(self, ax, max_hits=max_hits)


POLL_SECONDS = 1.0
"""Seconds for which the server may delay the answer about a job that goes on."""

DELETE_SECONDS = 5.0
"""Seconds within which the server must answer when a job is removed; the user may have pressed Ctrl-C."""


class ServerJob:
    """A search that a server runs or ran; the server keeps it until it is removed or expires.

    As a context manager, it is removed in the end. As an iterable, it waits, and yields a `JobResult` for each query.

    Parameters
    ----------
    connection : Connection
        To the server.
    data : dict
        The job, as the server states it.
    """

    def __init__(self, connection: Connection, data: dict[str, Any]) -> None:
        identifier = data.get("id")
        if not isinstance(identifier, str) or not identifier.isalnum() or data.get("state") not in JOB_STATES:
            raise connection.unexpected_response("describes jobs")
        self._connection = connection
        self.identifier: str = identifier
        """Identifier on the server; whoever knows it may read the job."""
        self.data = data
        """The job, as the server stated it last."""

    def __repr__(self) -> str:
        return f"<ServerJob {self.identifier} of {self._connection.url.server}: {self.data['state']}>"

    @property
    def state(self) -> JobState:
        """The state, asked of the server now."""
        return self._refresh(None)

    def _refresh(self, seconds: float | None) -> JobState:
        """Ask for the state; with seconds, let the server wait for the end so long, and be patient."""
        params = None if seconds is None else {"wait": f"{max(seconds, 0.01):.3g}"}
        data = self._connection.request(
            "GET", f"/jobs/{self.identifier}", params=params, is_patient=seconds is not None
        )
        if data.get("state") not in JOB_STATES or data.get("id") != self.identifier:
            raise self._connection.unexpected_response("describes jobs")
        self.data = data
        state: JobState = data["state"]
        return state

    def wait(self, timeout: float | None = None, *, progress: Progress | None = None) -> ServerJob:
        """Wait until it is done, and return it.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to return anyway; `state` then says how far it is.
        progress : callable, optional
            Called with the number of cells just finished.

        Raises
        ------
        InputError, ServerError
            If it failed or was cancelled, with the reason; if the server is out of reach for minutes.
        """
        n_reported = 0
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            state = self._refresh(POLL_SECONDS if end is None else min(POLL_SECONDS, end - time.monotonic()))
            n_done = self.data.get("cells_done")
            if progress is not None and type(n_done) is int and n_done > n_reported:  # less after a restart
                progress(n_done - n_reported)
                n_reported = n_done
            if state in ("failed", "cancelled"):
                if (problem := self.data.get("problem")) is not None:
                    raise self._connection.error_from_problem(problem)
                where = self._connection.url.server
                raise ServerError(f"{where}: job {self.identifier} is {state}, expected done")
            if state == "done" or (end is not None and time.monotonic() >= end):
                return self

    def _finish(self) -> None:
        """Wait, unless the job is known to be done, which it remains."""
        if self.data["state"] != "done":
            self.wait()

    # what it found

    def download(self, format: str) -> Iterator[bytes]:
        """Wait, and yield the bytes of a report; a download that breaks off goes on where it was.

        Parameters
        ----------
        format : str
            As ``--outfmt``. If the job was submitted with this output, its file is sent; the server writes any other.

        Raises
        ------
        InputError, ServerError
            As `wait` does, and if there is no such format.
        """
        self._finish()
        outputs: Sequence[str] = self.data.get("outputs") or ()
        if format in outputs:
            path, params = f"/jobs/{self.identifier}/outputs/{outputs.index(format)}", None
        else:
            name, *columns = format.split() or [""]
            path, params = f"/jobs/{self.identifier}/results", {"format": name, "columns": ",".join(columns)}
        yield from self._connection.download(path, params)

    def write(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Wait, and write a report, which the server makes.

        Parameters
        ----------
        path : path
            ``-`` is stdout. The file appears under its name when it is complete.
        format : str, optional
            As ``--outfmt``; by default that of the path's extension.

        Raises
        ------
        InputError, ServerError
            As `download` does.
        OutputError
            If the file cannot be written.
        """
        from swsearch.report.outputs import match_outputs_to_formats

        (output,) = match_outputs_to_formats([os.fspath(path)], [] if format is None else [format])
        self._finish()
        with open_outputs([(output.path, True)]) as (file,):
            file.writelines(self.download(output.outfmt))

    def __iter__(self) -> Iterator[JobResult]:
        self._finish()
        scoring = options_from_json(self.data.get("options", {})).scoring
        started: list[bytes] = []  # pieces of a line, which may be as long as the results of a query
        for piece in self.download("jsonl"):
            first, *lines = piece.split(b"\n")
            started.append(first)
            for line in lines:
                yield self._result(b"".join(started), scoring)
                started = [line]
        if any(started):
            raise ServerError(f"{self._connection.url.server}: the results end in the middle of a line; try again")

    def _result(self, line: bytes, scoring: Scoring) -> JobResult:
        try:
            return JobResult(json.loads(line), scoring)
        except (ValueError, KeyError, TypeError):
            raise self._connection.unexpected_response("describes hits") from None

    def to_arrow(self) -> pyarrow.Table:
        """Return all hits as a table of pyarrow, one row per alignment; see `swsearch.results.result`."""
        import pyarrow

        return pyarrow.ipc.open_file(io.BytesIO(b"".join(self.download("arrow")))).read_all()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table of `to_arrow` as a DataFrame of pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the table of `to_arrow` as a DataFrame of polars."""
        import polars

        return polars.DataFrame(self.to_arrow())

    # its end

    def cancel(self) -> None:
        """Stop it; what it found is lost.

        Raises
        ------
        InputError
            If another client has submitted it.
        """
        path = f"/jobs/{self.identifier}/cancel"
        self.data = self._connection.request("POST", path, is_patient=True)

    def delete(self) -> None:
        """Stop it if it runs, and remove it from the server.

        Raises
        ------
        InputError
            If it is gone, or another client has submitted it.
        """
        self._connection.request("DELETE", f"/jobs/{self.identifier}", timeout=DELETE_SECONDS)

    def __enter__(self) -> ServerJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete_quietly()

    def delete_quietly(self) -> None:
        """Remove it if the server can be reached; it expires otherwise."""
        with suppress(InputError, ServerError):
            self.delete()
