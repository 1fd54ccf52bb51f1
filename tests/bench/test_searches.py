"""Measurements of ``swsearch bench``; the tests of the command line run it."""

from pathlib import Path

from swsearch.bench import searches
from swsearch.bench.searches import Work
from swsearch.engines.reference import ReferenceEngine
from swsearch.errors import GpuUnavailableError

WORK = Work(Path("q.fasta"), Path("s.fasta"), 100, 3, 10, Path("/folder"))


def test_each_engine_that_works_is_measured(monkeypatch):
    monkeypatch.setattr(searches, "create_engine", lambda name: ReferenceEngine())
    engines, missing = searches._engine_list()
    assert [one.name for one in engines] == ["swsearch cpu", "swsearch gpu"]
    assert missing == []
    for name, one in zip(("cpu", "gpu"), engines, strict=True):
        (build,), search = one.prepare(WORK), one.run(WORK)
        assert build[build.index("-o") + 1] == search[search.index("q.fasta") + 1]
        assert search[search.index("--engine") + 1] == name


def test_why_the_gpu_is_not_measured(monkeypatch):
    def create(name):
        raise GpuUnavailableError("engine gpu cannot be used: there is no CUDA device")

    monkeypatch.setattr(searches, "create_engine", create)
    engines, missing = searches._engine_list()
    assert [one.name for one in engines] == ["swsearch cpu"]
    assert missing == ["swsearch gpu (engine gpu cannot be used: there is no CUDA device)"]
