"""Whether committed GPU results are those of the sources, as CI asks at its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from benchmarks.speed import gpu_current as current
from benchmarks.support.fingerprint import Fingerprint

HASHES = {"kernels": "a" * 64, "engine": "b" * 64}
ABOUT = {"date": "2026-11-21 15:00 UTC", "device": "NVIDIA H200", **HASHES}


def written(folder: Path, results: object) -> Path:
    path = folder / "gpu.json"
    path.write_text(results if isinstance(results, str) else json.dumps(results))
    return path


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "GPU results of 2026-11-21 (NVIDIA H200) are current for these kernels"),
        (
            {"kernels": "c" * 64},
            "GPU results of 2026-11-21 (NVIDIA H200) are of OTHER kernels (hash aaaaaaaaaaaa, now cccccccccccc)",
        ),
        (
            {"engine": "d" * 64},
            "GPU results of 2026-11-21 (NVIDIA H200) are current for these kernels, but of ANOTHER engine around "
            "them (hash bbbbbbbbbbbb, now dddddddddddd)",
        ),
    ],
)
def test_verdict(changes: dict[str, str], expected: str) -> None:
    assert current.verdict(ABOUT, Fingerprint(**{**HASHES, **changes})) == expected


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("{", "is not JSON"),
        ([], "no object 'about'"),
        ({}, "no object 'about'"),
        ({"about": {**ABOUT, "date": "yesterday"}}, r"about.date is 'yesterday'"),
        ({"about": {**ABOUT, "device": ""}}, r"about.device is ''"),
        ({"about": {**ABOUT, "kernels": "aaaa"}}, r"about.kernels is 'aaaa'"),
        ({"about": {**ABOUT, "kernels": 7}}, r"about.kernels is 7"),
        ({"about": {key: value for key, value in ABOUT.items() if key != "engine"}}, r"about.engine is None"),
    ],
)
def test_malformed_results_are_refused(tmp_path: Path, results: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        current.read_about(written(tmp_path, results))


def run(path: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    line = [sys.executable, "-m", "benchmarks.speed.gpu_current", str(path)]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)


def test_old_results_are_told_and_malformed_ones_fail(tmp_path: Path) -> None:
    done = run(written(tmp_path, {"about": ABOUT}))
    assert (done.returncode, done.stderr) == (0, "")
    assert "are of OTHER kernels (hash aaaaaaaaaaaa, now " in done.stdout
    done = run(written(tmp_path, {"about": {}}))
    assert done.returncode == 1
    assert "GPU results cannot be read" in done.stderr


def test_committed_results_are_well_formed() -> None:
    if not current.RESULTS.exists():
        pytest.skip("no GPU results are committed")
    about = current.read_about(current.RESULTS)
    assert {"date", "device", "kernels", "engine"} <= about.keys()
