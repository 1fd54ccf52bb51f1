"""Say whether the committed GPU results are those of the kernels and of the engine as they stand.

Prints a line for each file, which `.ci/run` shows at its end: CI has no GPU, so it can say that results are old but
not renew them. Exit code 1 if a results file cannot be read or lacks something, 0 otherwise.

Needs: nothing else. A second.
Run:   python -m benchmarks.speed.gpu_current [benchmarks/results/gpu.json ...]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks.support.fingerprint import Fingerprint, fingerprint

RESULTS = Path(__file__).resolve().parents[1] / "results" / "gpu.json"
"""Results of `gpu.py` from a machine with a GPU."""

PAIR_RESULTS = RESULTS.with_name("pairs_gpu.json")
"""Results of `pairs_gpu.py` from a machine with a GPU."""


def read_about(path: Path) -> dict[str, str]:
    """Return what a results file says of its making.

    Returns
    -------
    dict
        Text for ``date`` (begins with YYYY-MM-DD), ``device``, ``kernels`` and ``engine`` at least.

    Raises
    ------
    ValueError
        If the file is malformed; the message names what is wrong.
    """
    try:
        results: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: is not JSON ({error})") from error
    about = results.get("about") if isinstance(results, dict) else None
    if not isinstance(about, dict):
        raise ValueError(f"{path}: has no object 'about'")
    shapes = {"date": r"\d{4}-\d\d-\d\d.*", "device": r".+", "kernels": r"[0-9a-f]{64}", "engine": r"[0-9a-f]{64}"}
    for name, shape in shapes.items():
        value = about.get(name)
        if not isinstance(value, str) or re.fullmatch(shape, value) is None:
            raise ValueError(f"{path}: about.{name} is {value!r}, expected text like {shape}")
    return about


def verdict(about: dict[str, str], now: Fingerprint) -> str:
    """Say in one line whether results are those of the sources as they stand."""
    which = f"GPU results of {about['date'][:10]} ({about['device']})"
    if about["kernels"] != now.kernels:
        return f"{which} are of OTHER kernels (hash {about['kernels'][:12]}, now {now.kernels[:12]})"
    if about["engine"] != now.engine:
        change = f"hash {about['engine'][:12]}, now {now.engine[:12]}"
        return f"{which} are current for these kernels, but of ANOTHER engine around them ({change})"
    return f"{which} are current for these kernels"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="*", help="JSON files, default gpu.json and pairs_gpu.json")
    for path in parser.parse_args().results or (RESULTS, PAIR_RESULTS):
        if not path.exists():
            script = path.with_suffix(".py").name
            print(
                f"there are no GPU results ({path.name}); benchmarks/speed/{script} makes them where there is a GPU"
            )
            continue
        try:
            print(f"{path.name}: {verdict(read_about(path), fingerprint())}")
        except (OSError, ValueError) as error:
            sys.exit(f"GPU results cannot be read: {error}")


if __name__ == "__main__":
    main()
