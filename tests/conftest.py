"""Settings of a test run (quick or exhaustive, parallel or not), and the fixtures that all tests share.

``pytest`` runs a sample of long tests, with the same random cases each time. ``pytest --exhaustive`` also runs
everything marked ``exhaustive``, with more cases, again the same each time. ``--after-quick`` leaves out all that a
quick run has already done in the same way. ``SWSEARCH_HYPOTHESIS=thorough`` draws many new cases. A failing random
test prints its case through hypothesis or the assertion's message.
"""

from __future__ import annotations

import os
import signal
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from subprocess import TimeoutExpired
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from support import command_line, compiled, forking
from support.fake_gpu import fake_engine
from swsearch.db import hdf5_view
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.processors import available_processors

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # for benchmarks; last, so that the swsearch that is installed is what is tested

MOST_WORKERS = 8
"""Processes of a parallel run: each takes seconds to start and some hundred megabytes."""

LEFT_OUT: pytest.StashKey[int] = pytest.StashKey()

QUICK = Path(__file__).with_name("quick.txt")
"""How many cases of a long test a quick run takes; support/quick.py writes it from measured times."""

settings.register_profile(
    "thorough", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], max_examples=2000
)
# the same cases in every run: what fails here fails on every machine, and what passes here does not fail by chance
settings.register_profile("exhaustive", parent=settings.get_profile("thorough"), derandomize=True, max_examples=60)
settings.register_profile("quick", parent=settings.get_profile("exhaustive"), max_examples=20)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="run every variant, instruction set and case, and more random ones; otherwise a sample of them",
    )
    parser.addoption(
        "--after-quick",
        action="store_true",
        help="with --exhaustive: leave out tests of which a quick run, that passed, has run all in the same way",
    )
    parser.addoption(
        "--part",
        default="1/1",
        metavar="K/N",
        help="with --after-quick: of the tests that are left, run the K-th of N parts, and all long ones",
    )
    parser.addoption(
        "--renew-golden", action="store_true", help="write tests/golden, and outputs in docs, as they are now"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run folders on all cores; a file or a few tests have ended before other processes would have started."""
    if hasattr(config, "workerinput") or "PYTEST_XDIST_WORKER" in os.environ:
        return  # a worker, or a program that one started: it must not start workers of its own
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or option.numprocesses is not None or option.dist != "no":
        return
    looked_at = option.usepdb or option.trace or option.capture == "no" or option.collectonly
    folders = any(Path(argument).is_dir() for argument in config.args)
    if folders and not looked_at and not option.keyword:
        # not "auto", which may count processors of the machine that this process may not use
        workers = min(available_processors(), MOST_WORKERS)
        if workers > 1:
            option.numprocesses, option.dist = workers, "worksteal"


def pytest_configure(config: pytest.Config) -> None:
    exhaustive = config.getoption("--exhaustive")
    profile = os.environ.get("SWSEARCH_HYPOTHESIS", "exhaustive" if exhaustive else "quick")
    settings.load_profile(profile)
    command_line.FORKED = not exhaustive
    if settings.get_profile(profile).derandomize:
        from support.samples import draw_the_same_everywhere  # reads the profiles, which this file makes

        draw_the_same_everywhere()
    cache = getattr(config, "cache", None)  # none with -p no:cacheprovider
    if cache is not None:
        compiled.use(cache.mkdir("compiled"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out exhaustive cases, or all that is not more than a quick run, of those that were asked for."""
    exhaustive, after_quick = config.getoption("--exhaustive"), config.getoption("--after-quick")
    if exhaustive and not after_quick:
        return
    mark_long_cases(items)
    gone = set(the_same(items) if exhaustive else filter(is_left_out, items))
    number, n_parts = map(int, config.getoption("--part").split("/"))
    in_parts = [item for item in items if item.get_closest_marker("long") is None]
    gone |= {item for item in in_parts if zlib.crc32(item.nodeid.encode()) % n_parts != number - 1}
    left_out = [item for item in items if item in gone]
    config.stash[LEFT_OUT] = 0 if exhaustive else len(left_out)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in gone]


def mark_long_cases(items: list[pytest.Item]) -> None:
    """Mark the cases of long tests that a quick run leaves out; it takes some at equal distances."""
    counts = dict(line.split() for line in QUICK.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not is_left_out(item):
            cases.setdefault(_function(item), []).append(item)
    for function in cases.keys() & counts.keys():
        of_function, count = cases[function], int(counts[function])
        taken = {k * len(of_function) // count for k in range(count)}
        for place, item in enumerate(of_function):
            if place not in taken:
                item.add_marker(pytest.mark.long)


def is_left_out(item: pytest.Item) -> bool:
    """Say whether a quick run leaves out a test."""
    return any(item.get_closest_marker(name) is not None for name in ("exhaustive", "long"))


def the_same(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests that ``--after-quick`` leaves out, because a quick run has done the same.

    A test stays if a quick run leaves it out, if hypothesis draws its cases, or if it starts commands: a quick run
    forks them, an exhaustive run starts processes. Of the cases of a function that have several parameters, one such
    case stays; an exhaustive case is enough.
    """
    seen = {_function(item) for item in items if is_left_out(item)}
    for item in items:
        if is_left_out(item) or getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            continue
        combines = len(getattr(getattr(item, "callspec", None), "params", ())) > 1
        if not _has_commands(item) or (combines and _function(item) in seen):
            yield item
        seen.add(_function(item))


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _has_commands(item: pytest.Item) -> bool:
    used = vars(getattr(item, "module", command_line)).values()
    return any(each is command_line or getattr(each, "__module__", "") == command_line.__name__ for each in used)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that started this one what was left out; every one of them knows all tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    config, told = node.config, getattr(node, "workeroutput", {})
    config.stash[LEFT_OUT] = max(config.stash.get(LEFT_OUT, 0), told.get("left_out", 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left_out := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out} exhaustive cases were left out; pytest --exhaustive runs them too")


@pytest.fixture(scope="session")
def examples() -> Path:
    """Return the folder of the examples that ship with the project."""
    return ROOT / "examples"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of test data that does not ship with the project, or skip."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the shared test data are not here")
    return folder


@pytest.fixture(scope="session", autouse=True)
def forked_looks() -> Iterator[None]:
    """Look at database files by h5py in copies of a process that has imported it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hdf5_view, "subprocess", SimpleNamespace(run=forking.look, TimeoutExpired=TimeoutExpired))
        yield


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Hear Ctrl-C, also in a job in the background, whose shell had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def gpu(monkeypatch):
    """The GPU engine on the fake device."""
    with fake_engine(monkeypatch) as engine:
        yield engine


@pytest.fixture(scope="module")
def cpu():
    """The CPU engine, itself compared with the reference in test_engines.py."""
    with CpuEngine(2) as engine:
        yield engine
