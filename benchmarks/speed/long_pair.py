"""Measure what aligning one long pair costs, in seconds and memory.

Aligns two proteins with `swsearch align`, in a process of its own, and reports its wall seconds and peak memory.
Without files: two made-up relatives of 35,000 residues (the size of titin), four in ten residues changed, with gaps.

Needs: nothing else. Some seconds.
Run:   python -m benchmarks.speed.long_pair [--a A.fasta --b B.fasta] [--memory 256M]
           [--out benchmarks/results/long_pair.txt]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.support.common import arguments, finish, heading, table

LENGTH = 35_000
CHANGED = 0.4
LETTERS = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", dtype=np.uint8)


def make_pair(folder: Path) -> tuple[Path, Path]:
    """Write two relatives."""
    generator = np.random.default_rng(35)
    a = generator.choice(LETTERS, LENGTH)
    b = np.where(generator.random(LENGTH) < CHANGED, generator.choice(LETTERS, LENGTH), a)
    pieces = np.split(b, np.sort(generator.integers(0, LENGTH, 60)))
    b = np.concatenate([piece[int(generator.integers(0, 8)) :] for piece in pieces])
    for name, sequence in (("a", a), ("b", b)):
        (folder / f"{name}.fasta").write_text(f">{name}\n{sequence.tobytes().decode()}\n")
    return folder / "a.fasta", folder / "b.fasta"


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--a", help="FASTA file of one protein")
    parser.add_argument("--b", help="FASTA file of one protein")
    parser.add_argument("--memory", default="256M", help="as for swsearch align, default %(default)s")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="swsearch-pair-") as name:
        pair = (options.a, options.b) if options.a and options.b else make_pair(Path(name))
        for mode in ("local", "global"):
            output = Path(name) / "score.tsv"
            line = [sys.executable, "-m", "swsearch", "align", *map(str, pair), "--mode", mode]
            begun = time.perf_counter()
            process = subprocess.Popen([*line, "--memory", options.memory, "--outfmt", "cigar", "-o", str(output)])
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - begun
            if status:
                sys.exit(f"{' '.join(line)} failed")
            fields = output.read_text().split("\t")
            rows.append([mode, fields[2], f"{seconds:.1f}", f"{usage.ru_maxrss / 1024:.0f}"])
    lines = [
        *heading(__file__, ["numpy"]),
        f"{options.a or 'made-up'} x {options.b or 'made-up'}, --memory {options.memory}",
    ]
    finish([*lines, "", *table(["mode", "score", "wall s", "peak RSS MiB"], rows)], options.out)


if __name__ == "__main__":
    main()
