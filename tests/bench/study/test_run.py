"""A run of the study from end to end on the emulation: timing, batches, report, plots, and the command."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support import fake_driver
from support.fake_gpu import fake_engine
from support.host_machine import HostMachine
from support.host_pairs import host_aligner
from support.samples import sample
from swsearch.bench.study import checks, inter_task, runner, timing
from swsearch.bench.study.plots import PANELS, report, save_overview, save_plots, summary
from swsearch.bench.study.runner import Settings, StudyResults, run_on
from swsearch.bench.study.timing import Timer
from swsearch.bench.study.variants import APPROACHES, Variant, all_variants, variants_of
from swsearch.cli.main import app
from swsearch.errors import EngineError, GpuUnavailableError, InputError, OptionError


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a run small."""
    make_tiny(monkeypatch)


def make_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a run small enough for the emulation: one variant of each approach, and one of each sweep."""
    chosen: dict[object, Variant] = {}
    for variant in all_variants():
        made = replace(variant, threads=32, blocks=2) if variant.approach in ("strips", "inter-task") else variant
        chosen.setdefault((variant.approach, bool(variant.sweep)), made)

    def chosen_of(approach: str) -> list[Variant]:
        return [one for one in chosen.values() if one.approach == approach]

    def check(machine: HostMachine, variant: Variant, gaps: str) -> int:
        return checks.check_variant(machine, variant, gaps, ((20, 40),))

    monkeypatch.setattr(runner, "variants_of", chosen_of)
    monkeypatch.setattr(runner, "check_variant", check)
    monkeypatch.setattr(timing, "SUBJECTS", 60)
    monkeypatch.setattr(runner, "QUERIES", (4, 9))
    monkeypatch.setattr(runner, "SWEEP_QUERY", 9)
    monkeypatch.setattr(timing, "BATCH_LENGTH", 40)
    monkeypatch.setattr(timing, "STUDY_PAIRS", 3)
    monkeypatch.setattr(runner, "search_times", lambda *_: iter(()))
    monkeypatch.setattr(runner, "pair_times", lambda *_: iter(()))
    monkeypatch.setattr(timing, "LAUNCHES", 2)


@pytest.fixture(scope="module")
def results() -> StudyResults:
    """Run it all once."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_tiny(monkeypatch)
        return run_on(HostMachine(), Settings(sizes=(40, 64), gaps=("affine",)), lambda _: None)


def test_a_run(results: StudyResults) -> None:
    assert not results.skipped
    assert {row.approach for row in results.rows} == set(APPROACHES)
    for row in results.rows:
        assert row.checked > 0 and row.seconds > 0 and row.cpu_seconds > 0 and row.vector_seconds > 0, row
        assert row.speedup == pytest.approx(row.cpu_seconds / row.seconds)
        assert row.gcups == pytest.approx(row.rows * row.columns / row.seconds / 1e9)
    assert [batch["pairs"] for batch in results.batches] == [3]
    sizes = {row.rows for row in results.rows if row.approach == "diagonal-blocks" and not row.sweep}
    assert sizes == {40, 64}


def test_the_report(results: StudyResults) -> None:
    lines = report(results)
    for approach in APPROACHES:
        assert any(line.startswith(f"## {approach} (") for line in lines)
    assert any("matrix checked, cells" in line and "speed-up" in line for line in lines)
    assert any("with each traceback beside the next matrix" in line for line in lines)
    short = summary(results)
    assert len(short) == 2 + len({(row.approach, row.variant) for row in results.rows}) + 1
    assert short[-1].startswith("matrix checked: ")


@pytest.mark.parametrize("approach", sample(["", "skewed", "inter-task"], lambda approach: approach != "skewed"))
def test_the_plots(results: StudyResults, approach: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    stored = json.loads(json.dumps(results.as_json()))
    rows = [row for row in stored["rows"] if approach in ("", row["approach"])]
    paths = save_plots({**stored, "rows": rows}, tmp_path / "plots")
    assert [path.name for path in paths] == [f"study_{name}.svg" for name in PANELS]
    assert all(path.read_text().startswith("<?xml") for path in paths)
    if not approach:
        for name in ("first", "second"):
            save_overview(stored, tmp_path / f"{name}.svg")
        assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_a_run_without_time_still_checks(tiny: None) -> None:
    found = run_on(HostMachine(), Settings(["skewed"], (40,), ("affine",), budget=0), lambda _: None)
    assert not found.rows and len(found.checks) == 2
    assert all(text.endswith("no time left") for text in found.skipped)
    assert "Not run:" in report(found)


def test_checks_alone(tiny: None) -> None:
    said: list[str] = []
    found = run_on(HostMachine(), Settings(["strips"], (40,), ("linear",), check_only=True), said.append)
    assert not found.rows and not found.batches
    assert sum("matrix checked, 800 cells" in text for text in said) == 2


def test_what_does_not_fit_is_named(tiny: None) -> None:
    machine = HostMachine()
    machine.shared_limit = 1000
    found = run_on(machine, Settings(["inter-task"], (40,), ("affine",), check_only=True), lambda _: None)
    assert not found.skipped  # global buffers need none
    variant = next(one for one in variants_of("inter-task") if one.constant("SHARED"))
    with pytest.raises(OptionError, match="at most 1000 bytes"):
        checks.check_variant(machine, variant, "affine")


def test_what_is_wrong_is_told_and_the_others_run(tiny: None, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, *others = runner.variants_of("skewed")
    check = runner.check_variant

    def refuse(machine: HostMachine, variant: Variant, gaps: str) -> int:
        if variant == wrong:
            raise EngineError(f"{variant}: H of cell (1, 1) is 3, expected 5")
        return check(machine, variant, gaps)

    monkeypatch.setattr(runner, "check_variant", refuse)
    monkeypatch.setattr(runner, "open_machine", lambda _: nullcontext(HostMachine()))
    line = ["bench", "study", "--approach", "skewed", "--sizes", "40", "--gaps", "affine"]
    done = CliRunner().invoke(app, line)
    assert isinstance(done.exception, EngineError)
    assert "1 variants are wrong, the first" in str(done.exception)
    assert f"WRONG: {wrong}" in done.output and all(f"{one}: matrix checked" in done.output for one in others)


@pytest.mark.parametrize(
    ("module", "words", "extra"), [("matplotlib", ["--plot", "folder"], "plot"), ("parasail", [], "bench")]
)
def test_what_needs_another_package(
    monkeypatch: pytest.MonkeyPatch, module: str, words: list[str], extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = CliRunner().invoke(app, ["bench", "study", *words])
    assert isinstance(done.exception, InputError) and f"swsearch[{extra}]" in str(done.exception)


@pytest.mark.parametrize("approach", ["diagonal-blocks", "inter-task"])
def test_a_wrong_score_ends_the_timing(tiny: None, approach: str, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = Timer(HostMachine())
    variant = runner.variants_of(approach)[0]
    wrong = timing.CpuTime(1.0, 1.0, (12_345,))
    monkeypatch.setattr(timing, "cpu_pair", lambda _: wrong)
    monkeypatch.setattr(timing, "cpu_database", lambda *_: wrong)
    with pytest.raises(EngineError, match="parasail's"):
        (timer.inter_task if approach == "inter-task" else timer.pair)(variant, "affine", 40, 1)


def test_a_query_beyond_16_bits_is_refused() -> None:
    timer = Timer(HostMachine())
    timer.__dict__["subjects"] = inter_task.random_subjects(2)
    with pytest.raises(OptionError, match="32767"):
        timer.inter_task(variants_of("inter-task")[0], "affine", 3_000, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"approaches": ["all"]}, "approach: got 'all', expected one of diagonal-blocks"),
        ({"gaps": ["convex"]}, "gaps: got 'convex', expected linear, affine or both"),
        ({"sizes": [10]}, "sizes: got 10, expected lengths from 32"),
    ],
)
def test_settings(changes: dict[str, list[object]], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        Settings(**changes)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_the_command_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_driver.install(monkeypatch, cards=())
    done = CliRunner().invoke(app, ["bench", "study"])
    assert isinstance(done.exception, GpuUnavailableError)
    assert done.exception.exit_code == 7
    assert "no CUDA device" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["study", "--sizes", "1,x"], OptionError),
        (["study", "--approach", "fast"], OptionError),
        (["queries.fasta"], InputError),
        (["search", "queries.fasta"], InputError),
        (["--no-peers", "queries.fasta"], InputError),
    ],
)
def test_the_group_of_commands(arguments: list[str], error: type[Exception]) -> None:
    done = CliRunner().invoke(app, ["bench", *arguments])
    assert isinstance(done.exception, error)


def test_the_command_prints_what_the_run_found(tiny: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "run_study", lambda *given: run_on(HostMachine(), *given))
    stored = tmp_path / "study.json"
    line = ["bench", "study", "--approach", "strips", "--sizes", "40", "--gaps", "linear", "--json", str(stored)]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    assert "matrix checked" in done.output and "speed-up" in done.output
    assert {row["approach"] for row in json.loads(stored.read_text())["rows"]} == {"strips"}


def test_our_own_search_stands_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SUBJECTS", 40)
    monkeypatch.setattr(runner, "QUERIES", (5, 9))
    with fake_engine(monkeypatch) as engine:
        monkeypatch.setattr("swsearch.engines.gpu.engine.GpuEngine", lambda device: engine)
        rows = list(runner.search_times(Timer(HostMachine()), "affine", None))
    assert [row.rows for row in rows] == [5, 9]
    assert all(row.cpu_seconds > 0 and len(row.runs) == timing.TIMED_RUNS for row in rows)


@pytest.mark.exhaustive
def test_our_own_pair_kernels_stand_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    with host_aligner(monkeypatch) as aligner:
        monkeypatch.setattr("swsearch.engines.gpu.pairs.aligner.GpuPairAligner", lambda device: aligner)
        monkeypatch.setattr(aligner, "close", lambda: None)
        rows = list(runner.pair_times(Timer(HostMachine()), "strips", "linear", (40, 70), None))
        rows += runner.pair_times(Timer(HostMachine()), "diagonal-blocks", "affine", (40,), None)
    assert [(row.rows, row.mode) for row in rows[::2]] == [
        (40, "global"), (70, "global"), (40, "local"), (70, "local"), (40, "global"),
    ]  # fmt: skip
    assert all(row.cpu_seconds > 0 and len(row.runs) == timing.TIMED_RUNS for row in rows)
