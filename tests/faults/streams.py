"""Standard streams that are closed, full, or the wrong way round: the exit code tells the truth."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.data import INPUTS, SEARCH, copy_inputs, make_inputs
from faults.judging import Kind, Verdict, Wrong, check_end, check_left, check_refusal, refused, succeeded, told_of
from faults.running import Process, command

Words = list[object]

COMMANDS: dict[str, tuple[Words, int, list[str]]] = {
    "help": (["--help"], 0, []),
    "search help": (["search", "--help"], 0, []),
    "version": (["--version"], 0, []),
    "search": (["search", "queries.fasta", "db.h5", *SEARCH[:-1]], 0, []),
    "pairwise": (["search", "queries.fasta", "db.h5", "--outfmt", "0", "--engine", "cpu"], 0, []),
    "to a file": (["search", "queries.fasta", "db.h5", "-o", "a.tsv", "--engine", "cpu"], 0, ["a.tsv"]),
    "from stdin": (["search", "-", "db.h5", *SEARCH], 0, []),
    "subjects from stdin": (["search", "queries.fasta", "-", *SEARCH], 0, []),
    "build": (["db", "build", "subjects.fasta", "-o", "out.h5"], 0, ["out.h5"]),
    "build from stdin": (["db", "build", "-", "-o", "out.h5"], 0, ["out.h5"]),
    "info": (["db", "info", "db.h5"], 0, []),
    "verify": (["db", "verify", "db.h5"], 0, []),
    "fetch": (["db", "fetch", "db.h5", "s1_3"], 0, []),
    "append": (["db", "append", "db.h5", "more.fasta", "--on-duplicate", "keep"], 0, []),
    "align": (["align", "queries.fasta", "more.fasta"], 0, []),
    "no database": (["search", "queries.fasta", "nothing.h5"], 2, []),
    "no such option": (["search", "--no-such-option"], 1, []),
}
"""Commands, their exit codes with good streams, and the files that they make."""

NAMED = ("help", "search help")
"""Commands that print the program's name, which is another one in a process of its own."""

BAD_IN = ["closed", "write-only"]
BAD_OUT = ["closed", "full", "broken pipe", "read-only"]


@contextmanager
def opened(kind: str, good: Path) -> Iterator[int | None]:
    """Open a stream of a kind; None for a closed one."""
    descriptor = None
    if kind == "write-only":
        descriptor = os.open(os.devnull, os.O_WRONLY)
    elif kind == "full":
        descriptor = os.open("/dev/full", os.O_WRONLY)
    elif kind == "read-only":
        descriptor = os.open(os.devnull, os.O_RDONLY)
    elif kind == "broken pipe":
        reading, descriptor = os.pipe()
        os.close(reading)
    elif kind == "good":
        descriptor = os.open(good, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


class Streams(Kind):
    """Bad stdout: 6 where data were lost. Bad stderr: what the command did. Bad stdin: 1 where it was to be read."""

    name = "streams"
    what = "stdin, stdout and stderr closed, full, broken or the wrong way round, for 17 commands"
    counts = (1, 25, 500)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        make_inputs(folder)
        self.outputs: dict[str, bytes] = {}

    def _output(self, name: str) -> bytes:
        """Return what a command prints with good streams."""
        if name not in self.outputs:
            with tempfile.TemporaryDirectory(dir=self.folder) as place:
                copy_inputs(self.folder, Path(place))
                given = (self.folder / "queries.fasta").read_bytes()
                self.outputs[name] = command(*COMMANDS[name][0], cwd=Path(place), stdin=given).out
        return self.outputs[name]

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Run a command with one, two or three bad streams."""
        generator = self.generator(seed)
        name = generator.choice(list(COMMANDS))
        words, code, files = COMMANDS[name]
        kinds = self._kinds(generator)
        copy_inputs(self.folder, folder)
        with (
            opened(kinds[0], self.folder / "queries.fasta") as stdin,
            opened(kinds[1], folder) as stdout,
            opened(kinds[2], folder) as stderr,
        ):
            given = (
                {0: stdin} | ({} if kinds[1] == "good" else {1: stdout}) | ({} if kinds[2] == "good" else {2: stderr})
            )
            done = Process(words, folder, files=given).end()
        wanted = self._wanted(name, kinds, code)
        with told_of(f"{name}, stdin {kinds[0]}, stdout {kinds[1]}, stderr {kinds[2]}"):
            check_end(done)
            if done.code not in wanted:
                raise Wrong(f"exit {done.code}, expected {' or '.join(map(str, wanted))}: {done.err.strip()}")
            if kinds[1] == "good" and done.code == 0 and name not in NAMED and done.out != self._output(name):
                raise Wrong("other output than with good streams")
            if done.code in (1, 2, 6) and kinds[2] == "good" and name != "no such option":
                check_refusal(done, wanted)
            check_left(folder, *INPUTS, *(files if done.code == 0 else []))
            if name != "append" and (folder / "db.h5").read_bytes() != (self.folder / "db.h5").read_bytes():
                raise Wrong("the database was written to")
        return succeeded() if done.code == 0 else refused()

    @staticmethod
    def _kinds(generator: random.Random) -> list[str]:
        return [
            generator.choice(["good", "good", *BAD_IN]),
            generator.choice(["good", "good", *BAD_OUT]),
            generator.choice(["good", "good", *BAD_OUT]),
        ]

    def _wanted(self, name: str, kinds: list[str], code: int) -> list[int]:
        """Say how the command must end."""
        if "stdin" in name and kinds[0] != "good":
            return [2] if name.startswith("subjects") else [1]
        if not self._output(name) or kinds[1] == "good":
            return [code]
        return [0] if kinds[1] == "broken pipe" else [6]
