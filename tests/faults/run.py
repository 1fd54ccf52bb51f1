"""Run cases of all kinds, on all processors, and count how they ended."""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults.judging import Kind, Verdict, Wrong
from support import forking

SHOWN = 40
"""Open cases of a kind that are printed."""


@dataclass
class Counted:
    """Outcomes of the cases of a kind."""

    kind: type[Kind]
    ended: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    open: list[tuple[int, str]] = field(default_factory=list)
    """Seeds, and what happened."""


def kinds() -> dict[str, type[Kind]]:
    """Return all kinds of fault by name; they import what is tested."""
    from faults.changed import Changed
    from faults.checkpoint import Checkpoints
    from faults.contents import DatabaseContents
    from faults.fasta import Fasta
    from faults.hdf5 import Hdf5
    from faults.kills import Kills
    from faults.limits import Limits
    from faults.pipes import Pipes
    from faults.server import Server
    from faults.shared import Shared
    from faults.streams import Streams
    from faults.users import Users

    found: list[type[Kind]] = [
        Fasta, Hdf5, DatabaseContents, Kills, Limits, Streams, Pipes, Users, Shared, Changed, Checkpoints, Server,
    ]  # fmt: skip
    return {kind.name: kind for kind in found}


def one(kind: Kind, seed: int, kept: Path | None = None) -> Verdict:
    """Run a case in a folder of its own; keep that if asked."""
    folder = Path(tempfile.mkdtemp(prefix=f"swsearch_fault_{kind.name}_"))
    try:
        return kind.judge(seed, folder)
    except Wrong as wrong:
        return Verdict("open", str(wrong))
    except Exception:
        return Verdict("open", "the test itself failed: " + traceback.format_exc(limit=-4))
    finally:
        if kept is not None:
            shutil.copytree(folder, kept, dirs_exist_ok=True, symlinks=True)
        shutil.rmtree(folder, ignore_errors=True)


def several(kind: Kind, seeds: range, workers: int) -> Iterator[tuple[int, Verdict]]:
    """Run cases in so many processes; yield them as they end."""
    if workers == 1:
        for seed in seeds:
            yield seed, one(kind, seed)
        return
    reading, writing = os.pipe()
    children = []
    for number in range(workers):
        child = os.fork()
        if child == 0:
            os.close(reading)
            for seed in seeds[number::workers]:
                told = json.dumps([seed, *one(kind, seed)])[:4000]
                os.write(writing, told.encode()[:4000] + b"\n")  # whole, being short
            os._exit(0)
        children.append(child)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        for line in stream:
            seed, *verdict = json.loads(line)
            yield seed, Verdict(*verdict)
    for child in children:
        os.waitpid(child, 0)


def run(kind: type[Kind], seeds: range, workers: int) -> Counted:
    """Run cases of a kind and count how they ended."""
    started, counted = time.monotonic(), Counted(kind)
    folder = Path(tempfile.mkdtemp(prefix="swsearch_faults_"))
    try:
        made = kind(folder)
        gc.freeze()  # what copies never look at is not copied
        for seed, verdict in several(made, seeds, workers):
            counted.ended[verdict.kind] += 1
            if verdict.kind == "open":
                counted.open.append((seed, verdict.note))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    counted.seconds = time.monotonic() - started
    missing = len(seeds) - sum(counted.ended.values())
    if missing:
        counted.open.append((-1, f"{missing} cases never ended"))
        counted.ended["open"] += missing
    counted.open.sort()
    return counted


def say(counted: Counted) -> None:
    """Print what is open, and how to run it again."""
    name = counted.kind.name
    for seed, note in counted.open[:SHOWN]:
        print(f"{name} {seed}: {note}\n    python -m tests.faults --only {name} --seed {seed}", flush=True)
    if len(counted.open) > SHOWN:
        print(f"... and {len(counted.open) - SHOWN} more of {name}")
    print(f"{name}: {dict(counted.ended)}, {counted.seconds:.1f} s", flush=True)


def report(counts: list[Counted], arguments: list[str], earlier: list[str]) -> list[str]:
    """Return the table that is committed, with the rows of an earlier one for kinds that were not run."""
    from benchmarks.support.common import heading, table

    rows = {}
    for line in earlier:
        if line.startswith("| ") and not line.startswith("| fault |"):
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            rows[cells[0]] = cells
    for each in counts:
        ended = each.ended
        numbers = [sum(ended.values()), ended["refused"], ended["succeeded"], ended["open"]]
        shown = [f"{number:,}" for number in numbers]
        rows[each.kind.name] = [each.kind.name, each.kind.what, *shown, f"{each.seconds:.0f}"]
    columns = ["fault", "cases", "number", "refused as they should be", "succeeded as they should", "open", "s"]
    everything = f"{sum(sum(each.ended.values()) for each in counts):,} cases"
    return [
        *heading("tests/faults/run.py", ["h5py", "numpy"]),
        # where the table was put does not matter
        *(re.sub(r" --out \S+", "", line) for line in earlier if line.startswith("python -m ")),
        re.sub(r" --out \S+", "", shlex.join(["python", "-m", "tests.faults", *arguments])) + f": {everything}",
        "",
        *table(columns, [rows[name] for name in kinds() if name in rows]),
    ]


def _warm() -> None:
    """Do once what every command would do at its start: import, and make the parser of the command line."""
    import typer.main

    typer.main.get_command = functools.cache(typer.main.get_command)
    forking.import_everything()


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; return 1 if something is open."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Cases of what can go wrong.")
    known = kinds()
    parser.add_argument("--only", action="append", choices=list(known), help="a kind of fault, again for more")
    parser.add_argument("--seed", type=int, help="one case again")
    parser.add_argument("--seeds", type=int, help="how many cases, default that of the long run")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed, default %(default)s")
    parser.add_argument("--size", choices=["quick", "exhaustive", "long"], default="long")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="with --seed: copy the case's files there")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table there; with --only, its rows")
    given = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(given)
    _warm()
    chosen = [known[name] for name in options.only or known]
    if options.seed is not None:
        folder = Path(tempfile.mkdtemp(prefix="swsearch_faults_"))
        verdicts = [one(kind(folder), options.seed, options.keep) for kind in chosen]
        shutil.rmtree(folder, ignore_errors=True)
        for verdict in verdicts:
            print(f"{verdict.kind}: {verdict.note}" if verdict.note else verdict.kind)
        return int(any(verdict.kind == "open" for verdict in verdicts))
    counts = []
    for kind in chosen:
        number = options.seeds or kind.counts[["quick", "exhaustive", "long"].index(options.size)]
        counts.append(run(kind, range(options.first, options.first + number), options.workers))
        say(counts[-1])
    if options.out:
        from benchmarks.support.common import finish

        earlier = options.out.read_text(encoding="utf-8") if options.only and options.out.exists() else ""
        finish(report(counts, given, earlier.splitlines()), options.out)
    return int(any(each.ended["open"] for each in counts))
