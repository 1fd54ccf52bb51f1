"""FIFOs and pipes in place of files: slow, without data at first, not blocking, closed early."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from faults.data import QUERIES, SEARCH, build_samples, fasta, records, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, check_refusal, refused, succeeded, told_of
from faults.running import Done, command
from swsearch.db import Database

NAME = "input.fasta"
"""The file or FIFO that is read."""

COMMANDS: dict[str, list[object]] = {
    "queries": ["search", NAME, "db.h5", *SEARCH],
    "subjects": ["search", "queries.fasta", NAME, "--statistics", "none", *SEARCH],
    "build": ["db", "build", NAME, "-o", "out.h5", "-q"],
    "align": ["align", NAME, "more.fasta", "--outfmt", "cigar", "--engine", "cpu", "-q"],
}

LONG = "build"
"""The command that reads more than a pipe holds."""


def child(work: Callable[[], object]) -> int:
    """Do something in a process of its own; return its number."""
    number = os.fork()
    if number == 0:
        with contextlib.suppress(BaseException):
            work()
        os._exit(0)
    return number


def ended(number: int) -> None:
    """End a process, whatever it waits for."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)


class Pipes(Kind):
    """Input through a pipe: read as a file of the same bytes, however it arrives."""

    name = "pipes"
    what = "FIFOs and pipes that are slow, do not block or are closed early, as input and as output"
    counts = (1, 25, 1_000)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_samples(folder)
        build_samples(folder)
        self.short = fasta([*QUERIES, *records(3, 6)]).encode()
        self.long = fasta(records(4, 1_500, 300)).encode()
        self.output = command(*COMMANDS["queries"][:1], "queries.fasta", "plain.h5", *SEARCH, cwd=folder).out

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Read from or write to a pipe."""
        generator = self.generator(seed)
        for each in ("queries.fasta", "more.fasta"):
            (folder / each).symlink_to(self.folder / each)
        (folder / "db.h5").symlink_to(self.folder / "plain.h5")
        if generator.random() < 0.15:
            return self._written(generator, folder)
        name = generator.choice([*COMMANDS, LONG])
        data = self.long if name == LONG else self.short
        if generator.random() < 0.4:
            data = data[: generator.choice([0, 1, generator.randrange(len(data))])]
        (folder / NAME).write_bytes(data)
        expected, records_then = self._run(name, folder, COMMANDS[name])
        (folder / NAME).unlink()
        how = generator.choice(["FIFO", "stdin", "stdin that does not block"])
        done, records_now = self._piped(generator, name, folder, data, how)
        with told_of(f"{name}, {how}, {len(data):,} bytes"):
            check_end(done)
            if done.code != expected.code:
                raise Wrong(f"exit {done.code}, of a file {expected.code}: {done.err.strip()}")
            if (done.out, records_now) != (expected.out, records_then):
                raise Wrong("other results than of a file of the same bytes")
            if done.code:
                check_refusal(done, [1, 2], NAME if how == "FIFO" else "<stdin>")
        return succeeded() if done.code == 0 else refused()

    def _run(
        self, name: str, folder: Path, words: list[object], before: Callable[[], object] | None = None
    ) -> tuple[Done, list[bytes]]:
        """Run a command; return also the headers of what it built."""
        done = command(*words, cwd=folder, before=before)
        built = folder / "out.h5"
        if not built.exists():
            return done, []
        with Database.open(built) as database:
            headers = [database.header(place) + database.sequence(place).encode() for place in range(len(database))]
        built.unlink()
        return done, headers

    def _piped(
        self, generator: random.Random, name: str, folder: Path, data: bytes, how: str
    ) -> tuple[Done, list[bytes]]:
        cuts = sorted(generator.randrange(len(data) + 1) for _ in range(generator.choice([0, 1, 5])))
        pauses = [generator.choice([0, 0.002, 0.05]) for _ in cuts] + [generator.choice([0, 0, 0.3])]

        def write(descriptor: int) -> None:
            os.set_blocking(descriptor, True)
            for start, stop, pause in zip([0, *cuts], [*cuts, len(data)], pauses, strict=True):
                time.sleep(pause)
                rest = memoryview(data)[start:stop]
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            os.close(descriptor)

        if how == "FIFO":
            os.mkfifo(folder / NAME)
            writer = child(lambda: write(os.open(folder / NAME, os.O_WRONLY)))
            result = self._run(name, folder, COMMANDS[name])
            ended(writer)
            return result
        reading, writing = os.pipe()

        def feed() -> None:
            os.close(reading)
            write(writing)

        def take() -> None:
            os.dup2(reading, 0)
            os.close(reading)

        writer = child(feed)
        os.close(writing)
        if how != "stdin":
            os.set_blocking(reading, False)
        words = ["-" if word == NAME else word for word in COMMANDS[name]]
        result = self._run(name, folder, words, take)
        os.close(reading)
        ended(writer)
        return result

    def _written(self, generator: random.Random, folder: Path) -> Verdict:
        """Write to a FIFO whose reader takes all, or goes away."""
        taken = generator.choice([None, 0, generator.randrange(len(self.output))])
        os.mkfifo(folder / "out.fifo")

        def read() -> None:
            descriptor = os.open(folder / "out.fifo", os.O_RDONLY)
            got = b""
            while (taken is None or len(got) < taken) and (piece := os.read(descriptor, 65536)):
                got += piece
            (folder / "got").write_bytes(got)
            os.close(descriptor)

        reader = child(read)
        done = command("search", "queries.fasta", "db.h5", *SEARCH, "-o", "out.fifo", cwd=folder)
        if done.code == 0 and taken is None:
            os.waitpid(reader, 0)
        else:
            ended(reader)
        check_end(done)
        if done.code == 0:
            if taken is None and (folder / "got").read_bytes() != self.output:
                raise Wrong("a FIFO got other bytes than a file")
            return succeeded()
        if taken is None:
            raise Wrong(f"a FIFO that is read: exit {done.code}: {done.err.strip()}")
        check_refusal(done, [6])
        return refused()
