"""Compare what `gpu.py` measured of two revisions in turn, on one machine.

Reads turn-old-N.json and turn-new-N.json in a folder and prints, for one query at a time, for all together and for
the whole command, the median seconds of each side and their ratio.

Needs: what `gpu_session.sh speed` leaves.
Run:   python -m benchmarks.speed.gpu_turns FOLDER [--out benchmarks/results/gpu_turns.txt]
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.support.common import arguments, finish, table

Turn = dict[str, Any]

MEASURES = {
    "one query at a time, kernels": lambda turn: sum(each["kernel_seconds"] for each in turn["singles"]["queries"]),
    "one query at a time, wall": lambda turn: sum(each["wall_seconds"] for each in turn["singles"]["queries"]),
    "all queries, kernels": lambda turn: turn["batch"]["kernel_seconds"],
    "all queries, wall": lambda turn: turn["batch"]["wall_seconds"],
    "whole command": lambda turn: turn["command"]["seconds"],
}


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
    rows = []
    for name, measure in MEASURES.items():
        before, after = (statistics.median(map(measure, side)) for side in (old, new))
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
