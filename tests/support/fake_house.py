"""A server's house in memory: jobs go where a test puts them, and reports come from results that are there."""

from __future__ import annotations

import asyncio
import dataclasses
import io
from collections.abc import Generator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.report_cases import make_result
from swsearch.client.search_request import SearchRequest
from swsearch.run_info import RunInfo
from swsearch.scoring import Scoring
from swsearch.server.errors import ServerProblem, problem_of
from swsearch.server.job_store import Job, new_identifier
from swsearch.server.results import Format
from swsearch.server.settings import ServerSettings


def fake_place(name: str, **changed: Any) -> Any:
    """A database that is told of, and none."""
    stated = {
        "name": name, "title": f"{name}.h5", "n_subjects": 20000, "n_residues": 7_000_000, "mask": "none",
        "built": "2026-11-23T14:00:00+00:00", "sources": [{"path": f"{name}.fasta"}], "sha256": "ab" * 32,
        "identity": "cd" * 16, "engine": "cpu: AVX2, 2 threads", "state": "ready", "problem": "", **changed,
    }  # fmt: skip
    return SimpleNamespace(name=name, title=stated["title"], to_json=lambda: stated, is_dna="nucleotides" in stated)


class FakeHouse:
    """What the pages use of `swsearch.server.jobs.Jobs`."""

    def __init__(
        self, tokens: Sequence[str] = (), names: Sequence[str] = ("sprot", "trembl"), **changed: Any
    ) -> None:
        self.settings = ServerSettings((), Path(), tokens=frozenset(tokens))
        self._made = {name: fake_place(name, **changed) for name in names}
        self.begin_again()

    async def run(self) -> None:
        await asyncio.Event().wait()

    def begin_end(self) -> None:
        pass

    stop_all = begin_end

    async def wait(self, identifier: str, seconds: float) -> Job:
        return self.job(identifier)

    def begin_again(self) -> None:
        """Forget everything."""
        self.databases = dict(self._made)
        self.store = self
        self.jobs: dict[str, Job] = {}
        self.requests: dict[str, SearchRequest] = {}
        self.expired: set[str] = set()
        self.refuses: BaseException | None = None
        self.asked_subjects: list[tuple[str, int, list[int]]] = []
        self.rendered_with: dict[str, Any] = {}

    def submit(self, requests: Sequence[SearchRequest], client: str) -> list[Job]:
        if self.refuses is not None:
            raise self.refuses
        found: list[Job] = []
        for request in requests:
            queries, _ = request.read_queries()
            identifier = new_identifier()
            group = found[0].group if found else identifier
            job = Job(
                identifier=identifier, group=group, client=client, payer=client, database=request.database,
                title=request.title, options=dict(request.options), n_queries=len(queries), cells=0, place=3,
                n_residues=sum(len(each.codes) for each in queries), submitted=1_795_000_000.0 + len(self.jobs),
            )  # fmt: skip
            self.jobs[identifier], self.requests[identifier] = job, request
            found.append(job)
        return found

    def put(self, identifier: str, **changed: Any) -> None:
        """Say what has become of a job."""
        self.jobs[identifier] = dataclasses.replace(self.jobs[identifier], **changed)

    def job(self, identifier: str) -> Job:
        if identifier in self.expired:
            raise ServerProblem("expired", f"job {identifier} is no longer kept")
        if identifier not in self.jobs:
            raise ServerProblem("not_found", f"there is no job {identifier}")
        return self.jobs[identifier]

    def group(self, identifier: str) -> list[Job]:
        return [each for each in self.jobs.values() if each.group == self.job(identifier).group]

    def jobs_of(self, client: str) -> list[Job]:
        return [each for each in reversed(self.jobs.values()) if each.client == client]

    async def cancel(self, identifier: str, client: str) -> Job:
        self._check(identifier, client)
        if not self.job(identifier).is_ended:
            self.put(identifier, state="cancelled", ended=1_795_000_100.0)
        return self.jobs[identifier]

    async def delete(self, identifier: str, client: str) -> None:
        self._check(identifier, client)
        del self.jobs[identifier]

    def _check(self, identifier: str, client: str) -> None:
        if self.job(identifier).client != client:
            raise ServerProblem("not_allowed", "the job is another client's")

    def request(self, identifier: str) -> SearchRequest:
        self.job(identifier)
        return self.requests[identifier]

    def rendered(self, identifier: str, wanted: Format, queries: tuple[int, int] | None = None) -> Generator[bytes]:
        job = self.job(identifier)
        if job.state != "done":
            raise ServerProblem("conflict", f"job {identifier} is {job.state}")
        first, last = queries or (1, job.n_queries)
        self.rendered_with = {"bar": wanted.bar, "subjects_url": wanted.subjects_url, "queries": queries}
        text = io.StringIO()
        writer = wanted.writer(text)
        writer.begin(RunInfo("0", "sprot.h5", 1, 10, Scoring(), "local", None, 10.0, 500, queries="q.fa"))
        for number in range(first, last + 1):
            writer.write(dataclasses.replace(make_result(), query_id=f"query_{number}"))
        writer.end()
        return (piece for piece in [text.getvalue().encode("utf-8", "replace")])

    def subjects(self, identifier: str, query: int, hits: Sequence[int]) -> Generator[bytes]:
        self.asked_subjects.append((identifier, query, list(hits)))
        return (piece for piece in [b">found\nMKV\n"])

    def health(self) -> Any:
        return {"ok": True, "why": ""}

    def problem_for(self, error: BaseException) -> ServerProblem:
        return problem_of(error)
