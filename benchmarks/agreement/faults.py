"""Are a search's bytes the same whatever happens to its Dask workers at whatever moment? Kills, hangs, Ctrl-C.

A scheduler and two workers of this machine search a small database in volumes. In every run something happens at a
random moment, from the start of the command to a little after the time that it takes undisturbed; --seed and the
run's number draw it again. A search that can go on must write the same bytes as one process without workers. One that
cannot must end within a minute, or three where it waits for workers, with one sentence and its exit code, and leave
no output. After Ctrl-C and the like it is looked whether anything still runs: tasks that the scheduler knows, workers
that use their processors, processes.

"At work" counts the runs in which workers had tasks when it happened; the others hit the start or the end of the
command.

Needs: FASTA files of queries and subjects (the examples of benchmarks/README.md by default), dask.distributed. A run
takes a few seconds; 100 of each kind more than an hour.
Run:   python -m benchmarks.agreement.faults [--runs 100] [--only WORD ...] [--seed 1] [--queries FASTA]
           [--subjects FASTA] [--first 60] [--out benchmarks/results/cluster_faults.txt]
Exit code 1 if a run writes other bytes, ends otherwise than it should, or leaves something running.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.agreement.fault_kinds import FAULTS, Client, Trial
from benchmarks.support.common import arguments, data_line, finish, heading, read, swsearch, table, write
from benchmarks.support.timing import say
from benchmarks.support.workers import Workers

VOLUMES = 5


class Bench:
    """A database in volumes, queries, and a cluster that is whole before each run.

    Parameters
    ----------
    folder : Path
        For all files.
    options : argparse.Namespace
        The script's.
    """

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder = folder
        queries, subjects = read(options.queries, options.first), read(options.subjects)
        self.about = data_line(queries, subjects, options)
        write(folder / "queries.fasta", queries)
        whole = folder / "one" / "database.h5"
        whole.parent.mkdir()
        swsearch("db", "build", write(folder / "subjects.fasta", subjects), "-o", whole, "--quiet")
        size = whole.stat().st_size // VOLUMES * 21 // 20 + (32 << 10)
        swsearch("db", "split", whole, "-o", folder / "database.h5", "--volume-size", size, "--quiet")
        (whole.parent / "queries.fasta").symlink_to(folder / "queries.fasta")
        client = Client(whole.parent, [])
        if client.end():
            sys.exit(client.err)
        self.right, self.alone = client.written(), client.seconds
        self.machines = Workers(folder)
        self.takes = statistics.median(self._undisturbed() for _ in range(3))

    def _undisturbed(self) -> float:
        client = Client(self.folder, ["--cluster", self.machines.address])
        if client.end() or client.written() != self.right:
            sys.exit(f"without any fault: {client.err or 'other bytes'}")
        return client.seconds

    def trial(self, seed: str) -> Trial:
        """Return the next run, on a cluster that is whole."""
        if self.machines.scheduler.poll() is not None:
            self.machines.close()
            self.machines = Workers(self.folder)
        self.machines.restore()
        return Trial(self.folder, self.machines, self.right, self.takes, seed)

    def runs(self, name: str, seed: int, n_runs: int) -> Iterator[Trial]:
        """Make some runs."""
        for number in range(n_runs):
            trial = self.trial(f"{name} {seed} {number}")
            trial.run(FAULTS[name])
            state = trial.problem or f"{trial.client.seconds:.1f} s, code {trial.client.process.returncode}"
            say(f"{name}, seed {seed}, run {number}: {state}")
            yield trial


def row_of(name: str, seen: Sequence[Trial]) -> list[object]:
    """Return a row of the table."""
    good = [each.client.process.returncode for each in seen if not each.problem]
    codes = ", ".join(f"{number} x {code}" for code, number in sorted(Counter(good).items()) if code) or "-"
    seconds = sorted(each.client.seconds for each in seen if each.client.seconds) or [0.0]
    at_work, wrong = sum(each.at_work > 0 for each in seen), len(seen) - len(good)
    shown = f"{statistics.median(seconds):.1f}", f"{seconds[-1]:.1f}"
    return [name, len(seen), at_work, good.count(0), codes, wrong, *shown]


def said_by(name: str, seen: Sequence[Trial]) -> Iterator[str]:
    """Yield what runs said, and how often, and what went wrong."""
    said = Counter(line for each in seen for line in each.client.err.strip().splitlines())
    yield from (f"{name}, {number} x: {line[:200]}" for line, number in said.most_common(6))
    yield from (f"WRONG {name}, run {number}: {each.problem}" for number, each in enumerate(seen) if each.problem)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=100, help="of each kind, default %(default)s")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="kinds whose name has one of these")
    parser.add_argument("--seed", type=int, default=1, help="draws the moments, default %(default)s")
    parser.set_defaults(first=60)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background would hand on deafness
    names = [name for name in FAULTS if not options.only or any(word in name for word in options.only)]
    rows, said = [], []
    with tempfile.TemporaryDirectory(prefix="swsearch-faults-") as made:
        bench = Bench(Path(made), options)
        try:
            for name in names:
                seen = list(bench.runs(name, options.seed, options.runs))
                rows.append(row_of(name, seen))
                said += [*said_by(name, seen)]
        finally:
            bench.machines.close()
    n_wrong = sum(int(str(row[5])) for row in rows)
    heads = ["what", "runs", "at work", "same bytes", "ended, exit code", "wrong", "s, median", "s, most"]
    lines = [
        *heading(__file__, ["distributed"]), bench.about,
        f"seed {options.seed}; undisturbed: one process {bench.alone:.1f} s, two workers {bench.takes:.1f} s",
        "", *table(heads, rows), "", *said, "", f"{sum(int(str(row[1])) for row in rows)} runs, {n_wrong} wrong",
    ]  # fmt: skip
    finish(lines, options.out)
    if n_wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
