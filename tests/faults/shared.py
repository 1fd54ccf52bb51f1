"""One Database object in several threads, and in processes that are forked or spawned."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import swsearch
from faults.data import QUERIES, build_samples, succeed, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, refused, succeeded, tail
from faults.running import copy
from swsearch.db import Database
from swsearch.errors import SwsearchError

N_THREADS = 4


def found(results: Any) -> list[Any]:
    """Return what a search found, in values that can be compared."""
    return [
        [(hit.subject_id, hit.score, hit.evalue, hit.alignment.coordinates.tolist()) for hit in result.hits]
        for result in results
    ]


def some(database: Any) -> range:
    """Return the places of some subjects from all of a database."""
    return range(0, len(database), max(len(database) // 9, 1))


USES: dict[str, Callable[[Any], Any]] = {
    "search": lambda database: found(swsearch.search(QUERIES, database, engine="cpu", threads=1)),
    "search in threads": lambda database: found(swsearch.search(QUERIES, database, engine="cpu", threads=2)),
    "score": lambda database: swsearch.score(QUERIES, database, engine="cpu", threads=1).tolist(),
    "sequence": lambda database: [database.sequence(place) for place in some(database)],
    "header": lambda database: [database.header(place) for place in some(database)],
    "find": lambda database: database.find_many(["s1_3", "s1_65", "nothing"]),
    "info": lambda database: database.info(),
    "chunks": lambda database: [chunk.residues.tobytes() for chunk in database.chunks(database.residue_bytes // 3)],
}
"""Uses of a database, by name."""


@functools.cache
def all_uses(folder: Path, base: str) -> dict[str, Any]:
    """Use a database in all ways, in a copy of this process, which is to start no threads; return what came out."""

    def work() -> None:
        with Database.open(base) as database:
            sys.stdout.buffer.write(pickle.dumps({name: of(database) for name, of in USES.items()}))

    expected: dict[str, Any] = pickle.loads(succeed(copy(work, cwd=folder, limit=60)).out)
    return expected


def use(database: Any, names: list[str], expected: dict[str, Any]) -> None:
    """Do some of it; raise where something else comes out than before."""
    for name in names:
        if USES[name](database) != expected[name]:
            raise Wrong(f"{name}: other results than of one alone")


def used_in_another(database: Any, names: list[str]) -> None:
    """Use a database that another process sent: print what came out, to be compared there."""
    print(repr([USES[name](database) for name in names]))


class Shared(Kind):
    """Threads, forked and spawned processes get what one alone gets, or a sentence."""

    name = "shared"
    what = "one Database object in threads, forked and spawned processes, used in eight ways"
    counts = (1, 30, 400)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_samples(folder)
        self.bases = build_samples(folder)

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Share a database in one of three ways."""
        generator = self.generator(seed)
        base = generator.choice(self.bases)
        expected = all_uses(self.folder, base)
        way = generator.choices([in_threads, in_forks, in_spawned], [6, 6, 1])[0]
        done = copy(lambda: way(generator, Path(base), expected), cwd=self.folder, limit=60)
        check_end(done)
        if done.code:
            raise Wrong(f"{base}, {way.__name__}: exit {done.code}: {tail(done.err)}")
        return refused() if done.out == b"refused\n" else succeeded()


def in_threads(generator: random.Random, base: Path, expected: dict[str, Any]) -> None:
    """Use one database in several threads."""
    problems: list[BaseException] = []

    def work(names: list[str]) -> None:
        try:
            use(database, names, expected)
        except BaseException as problem:
            problems.append(problem)

    with Database.open(base) as database:
        threads = [
            threading.Thread(target=work, args=(generator.choices(list(USES), k=4),)) for _ in range(N_THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if problems:
        raise problems[0]


def in_forks(generator: random.Random, base: Path, expected: dict[str, Any]) -> None:
    """Use a database in forked processes and here, before and after, some of it in a thread."""
    with Database.open(base) as database:
        use(database, generator.choices(list(USES), k=generator.choice([0, 2])), expected)
        reader = threading.Thread(target=use, args=(database, ["chunks", "sequence", "find"], expected))
        if generator.random() < 0.5:
            reader.start()
        children = []
        for _ in range(3):
            names = generator.choices([name for name in USES if name != "search in threads"], k=3)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    use(database, names, expected)
                    code = 0
                finally:
                    os._exit(code)
            children.append(child)
        use(database, generator.choices(list(USES), k=2), expected)
        if reader.ident is not None:
            reader.join()
        for child in children:
            _, status = os.waitpid(child, 0)
            if status:
                raise Wrong(f"a forked process ended with {os.waitstatus_to_exitcode(status)}")


def in_spawned(generator: random.Random, base: Path, expected: dict[str, Any]) -> None:
    """Send a database to a spawned process; it arrives, or a sentence says why it does not."""
    names = generator.choices(list(USES), k=2)
    with Database.open(base) as database:
        try:
            process = multiprocessing.get_context("spawn").Process(target=used_in_another, args=(database, names))
            process.start()
        except (SwsearchError, TypeError) as error:
            assert "atabase" in str(error), error  # a sentence of ours, not of h5py
            print("refused")
            return
        process.join()
        if process.exitcode:
            raise Wrong(f"the spawned process ended with {process.exitcode}")
