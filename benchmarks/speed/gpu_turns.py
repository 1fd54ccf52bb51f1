"""Compare what `gpu.py` measured of two revisions in turn, on one machine.

Reads turn-old-N.json and turn-new-N.json in a folder and prints the median seconds of each side and their ratio, for
each part that was measured.

Needs: what `gpu_session.sh turns` leaves.
Run:   python -m benchmarks.speed.gpu_turns FOLDER [--out benchmarks/results/gpu_turns.txt]
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.support.common import arguments, finish, table

Turn = dict[str, Any]


def seconds(turn: Turn) -> dict[str, float]:
    """Return the seconds of each part that was measured, by its name in the table."""
    parts = {}
    if "singles" in turn:
        queries = turn["singles"]["queries"]
        parts["one query at a time"] = {
            which: sum(each[which] for each in queries) for which in ("kernel_seconds", "wall_seconds")
        }
    if "batch" in turn:
        parts["all queries at once"] = turn["batch"]
    if "streamed" in turn:
        parts["all queries at once, 100 MiB"] = turn["streamed"]["streamed"]
    parts |= turn.get("jobs", {}).get("jobs", {})
    found = {
        f"{name}, {which}": part[f"{key}_seconds"]
        for name, part in parts.items()
        for which, key in (("kernels", "kernel"), ("wall", "wall"))
    }
    return found | ({"whole command": turn["command"]["seconds"]} if "command" in turn else {})


def turns(folder: Path, side: str) -> list[Turn]:
    """Read what was measured of one side."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(f"turn-{side}-*.json"))]


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    old, new = turns(options.folder, "old"), turns(options.folder, "new")
    if not old or not new:
        parser.error(f"{options.folder}: got {len(old)} old and {len(new)} new turns, expected some of both")
    sides = [[seconds(turn) for turn in side] for side in (old, new)]
    rows = []
    for name in sides[1][0]:
        before, after = (statistics.median(turn[name] for turn in side) for side in sides)
        rows.append((name, f"{before:.4f}", f"{after:.4f}", f"{after / before:.3f}"))
    about, before = new[-1]["about"], old[-1]["about"]
    lines = [
        f"benchmarks/speed/gpu_turns.py, {about['date']}", *about["heading"][1:],
        about["description"],
        f"{about['database']}: {about['subjects']:,} subjects, {about['residues']:,} residues",
        f"old: kernels {before['kernels'][:12]}, engine {before['engine'][:12]}; "
        f"new: kernels {about['kernels'][:12]}, engine {about['engine'][:12]}; medians of {len(new)} turns", "",
        *table(["", "old, s", "new, s", "new / old"], rows),
    ]  # fmt: skip
    finish(lines, options.out)


if __name__ == "__main__":
    main()
