"""How long do two revisions of swsearch take? The same commands by both, in turns.

Each case is a command line, run by the old revision and by the new one in turn, after one run of each that is not
counted. Wall time is that of the whole command, processor time that of all its threads. Ratios are of medians, new by
old: below 1 the new one is faster. The reports of both are compared, byte by byte.

Needs: OLD and NEW, each the Python of a virtual environment with its revision installed, or a checkout whose
extension is compiled in place. Queries are some of the subjects.
Run:   python -m benchmarks.speed.revisions OLD NEW SUBJECTS.fasta --engine cpu [--runs 5] [--only WORD] [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.support.common import finish, heading, read, table, write

CASES = {
    "1 query": "one.fasta subjects.h5",
    "20 queries": "few.fasta subjects.h5",
    "20 queries, published": "few.fasta subjects.h5 --statistics published",
    "20 queries, 3 alignments": "few.fasta subjects.h5 --max-alignments 3",
    "many queries": "many.fasta subjects.h5 --max-hits 50",
    "many queries, published": "many.fasta subjects.h5 --max-hits 50 --statistics published",
    "3 iterations": "hundred.fasta subjects.h5 --iterations 3 --max-hits 50",
    "3 iterations, published": "hundred.fasta subjects.h5 --iterations 3 --max-hits 50 --statistics published",
}


class Taken(NamedTuple):
    """Seconds of a command: by the clock, and of all processors."""

    wall: float
    processors: float


def run(revision: Path, folder: Path, *words: str) -> Taken:
    """Run a command of a revision in a folder."""
    environment = dict(os.environ, PYTHONSAFEPATH="1")
    python = str(revision)
    if revision.is_dir():
        python = "python3"
        environment["PYTHONPATH"] = os.pathsep.join([str(revision), os.environ.get("PYTHONPATH", "")])
    command = [python, "-m", "swsearch", *words, "-q"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Run the benchmark."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("old", "new", "subjects"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--many", type=int, default=1000, help="queries of the cases with many")
    parser.add_argument("--hundred", type=int, default=100, help="queries of the cases with iterations")
    parser.add_argument("--only", default="", help="cases with this word")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    revisions = {"old": given.old.absolute(), "new": given.new.absolute()}
    records = read(given.subjects)
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, n in {"one": 1, "few": 20, "many": given.many, "hundred": given.hundred}.items():
            write(folder / f"{name}.fasta", records[len(records) // (2 * n) :: max(len(records) // n, 1)][:n])
        for side, revision in revisions.items():  # each its own database: their formats may be others
            (folder / side).mkdir()
            run(revision, folder / side, "db", "build", str(given.subjects.absolute()), "-o", "subjects.h5")
        for case in (case for case in CASES if given.only in case):
            taken: dict[str, list[Taken]] = {"old": [], "new": []}
            for turn in range(given.runs + 1):
                for side, revision in revisions.items():
                    words = f"search ../{CASES[case]} --engine {given.engine} -o ../{side}.tsv"
                    found = run(revision, folder / side, *words.split())
                    taken[side] += [found] if turn else []
            same = (folder / "old.tsv").read_bytes() == (folder / "new.tsv").read_bytes()
            walls, processors = (
                {side: median(getattr(each, what) for each in taken[side]) for side in taken}
                for what in Taken._fields
            )
            rows.append(
                [
                    case, f"{walls['old']:.2f}", f"{walls['new']:.2f}", f"{walls['new'] / walls['old']:.2f}",
                    f"{processors['new'] / processors['old']:.2f}", "the same" if same else "DIFFERENT",
                ]
            )  # fmt: skip
            print(*rows[-1], sep="  ", flush=True)
    lines = heading("benchmarks/speed/revisions.py", ["numpy"])
    lines += [f"engine {given.engine}, {len(records):,} subjects, {given.runs} runs of each in turns, after one", ""]
    lines += table(["case", "old, s", "new, s", "new/old", "processors", "reports"], rows)
    finish(lines, given.out)


if __name__ == "__main__":
    main()
