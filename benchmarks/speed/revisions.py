"""How long do two revisions of swsearch take? The same commands by both, in turns.

Each case is a command line, run by the old revision and by the new one in turn, after one run of each that is not
counted. Wall time is that of the whole command, processor time that of all its threads. Ratios are medians of turns,
new by old: below 1 the new one is faster. The reports of both are compared, byte by byte. With --drivers, the sides
differ in the package that reaches CUDA's driver; OLD and NEW may then be the same checkout.

Needs: OLD and NEW, each the Python of a virtual environment with its revision installed, or a checkout whose
extension is compiled in place. Queries are some of the subjects.
Run:   python -m benchmarks.speed.revisions OLD NEW SUBJECTS.fasta --engine cpu [--runs 5] [--only WORD] [--out FILE]
           [--drivers pycuda,cuda-bindings]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.support.common import arguments, finish, heading, read, table, write
from benchmarks.support.timing import in_turns, ratio

NO_CACHE = "no kernel cache"
"""End of the name of a case whose kernels are compiled, as by the first search after an installation."""

CASES = {
    "1 query": "one.fasta subjects.h5",
    f"1 query, {NO_CACHE}": "one.fasta subjects.h5",
    "20 queries": "few.fasta subjects.h5",
    "20 queries, published": "few.fasta subjects.h5 --statistics published",
    "20 queries, 3 alignments": "few.fasta subjects.h5 --max-alignments 3",
    "many queries": "many.fasta subjects.h5 --max-hits 50",
    "many queries, published": "many.fasta subjects.h5 --max-hits 50 --statistics published",
    "3 iterations": "hundred.fasta subjects.h5 --iterations 3 --max-hits 50",
    "3 iterations, published": "hundred.fasta subjects.h5 --iterations 3 --max-hits 50 --statistics published",
}


def run(revision: Path, driver: str, folder: Path, *words: str, cached: bool = True) -> None:
    """Run a command of a revision in a folder."""
    environment = dict(os.environ, PYTHONSAFEPATH="1")
    if driver:
        environment["SWSEARCH_CUDA_DRIVER"] = driver
    if not cached:
        environment["SWSEARCH_CACHE"] = tempfile.mkdtemp(dir=folder)
    python = str(revision)
    if revision.is_dir():
        python = sys.executable
        environment["PYTHONPATH"] = os.pathsep.join([str(revision), os.environ.get("PYTHONPATH", "")])
    command = [python, "-m", "swsearch", *words, "-q"]
    subprocess.run(command, cwd=folder, env=environment, check=True, stderr=subprocess.DEVNULL)


def main() -> None:
    parser = arguments(__doc__, files=False)
    for name in ("old", "new", "subjects"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--engine", default="cpu", help="default %(default)s")
    parser.add_argument("--runs", type=int, default=5, help="default %(default)s")
    parser.add_argument("--many", type=int, default=1000, help="queries of cases with many, default %(default)s")
    parser.add_argument("--hundred", type=int, default=100, help="those of iterations, default %(default)s")
    parser.add_argument("--only", default="", help="cases with this word")
    parser.add_argument(
        "--drivers", default=",", help="SWSEARCH_CUDA_DRIVER of OLD and of NEW, as pycuda,cuda-bindings"
    )
    given = parser.parse_args()
    drivers = dict(zip(("old", "new"), given.drivers.split(","), strict=True))
    revisions = {"old": given.old.absolute(), "new": given.new.absolute()}
    records, rows = read(given.subjects), []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, n in {"one": 1, "few": 20, "many": given.many, "hundred": given.hundred}.items():
            write(folder / f"{name}.fasta", records[len(records) // (2 * n) :: max(len(records) // n, 1)][:n])
        for side, revision in revisions.items():  # each its own database: their formats may be others
            (folder / side).mkdir()
            build = "db", "build", str(given.subjects.absolute()), "-o", "subjects.h5"
            run(revision, drivers[side], folder / side, *build)
        for case in (case for case in CASES if given.only in case):
            words = f"search ../{CASES[case]} --engine {given.engine} -o found.tsv".split()
            works = {
                side: partial(run, revision, drivers[side], folder / side, *words, cached=NO_CACHE not in case)
                for side, revision in revisions.items()
            }
            in_turns(works, 1, "not counted: ")
            old, new = in_turns(works, given.runs, f"{case}, ").values()
            same = len({(folder / side / "found.tsv").read_bytes() for side in works}) == 1
            rows.append([
                case, f"{old.median:.2f}", f"{new.median:.2f}", f"{ratio(new.wall, old.wall):.3f}",
                f"{ratio(new.busy, old.busy):.2f}", "the same" if same else "DIFFERENT",
            ])  # fmt: skip
    finish(
        [
            *heading(__file__, ["numpy", *filter(None, drivers.values())]),
            f"engine {given.engine}, {len(records):,} subjects, {given.runs} runs of each in turns, after one",
            *([f"old: {drivers['old']}; new: {drivers['new']}"] if any(drivers.values()) else []), "",
            *table(["case", "old, s", "new, s", "new/old", "processors", "reports"], rows),
        ],
        given.out,
    )  # fmt: skip


if __name__ == "__main__":
    main()
