"""Little memory and small files: success with the right bytes, or one sentence, and nothing left."""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

from faults.data import INPUTS, SEARCH, copy_inputs, make_inputs, succeed
from faults.judging import (
    MIB,
    Kind,
    Verdict,
    Wrong,
    check_end,
    check_left,
    check_refusal,
    refused,
    succeeded,
    told_of,
)
from faults.running import Done, Process, command

REPORTS: list[object] = [
    "search", "queries.fasta", "db.h5", "-o", "a.tsv", "-o", "b.html", "-o", "c.xml", "-o", "d.json", "--engine",
    "cpu", "-q",
]  # fmt: skip

COMMANDS: dict[str, tuple[list[object], list[str]]] = {
    "search": (["search", "queries.fasta", "db.h5", *SEARCH], []),
    "threads": (["search", "queries.fasta", "db.h5", "-q", "--engine", "cpu"], []),
    "reports": (REPORTS, ["a.tsv", "b.html", "c.xml", "d.json"]),
    "parquet": (["search", "queries.fasta", "db.h5", "-o", "a.parquet", "--engine", "cpu", "-q"], ["a.parquet"]),
    "fasta": (["search", "queries.fasta", "subjects.fasta", *SEARCH], []),
    "build": (["db", "build", "subjects.fasta", "-o", "out.h5", "-q"], ["out.h5"]),
    "append": (["db", "append", "db.h5", "more.fasta", "-q", "--on-duplicate", "keep"], []),
    "remove": (["db", "remove", "db.h5", "s1_3", "-q"], []),
    "merge": (["db", "merge", "db.h5", "-o", "out.h5", "--on-duplicate", "keep", "-q"], ["out.h5"]),
    "info": (["db", "info", "db.h5"], []),
    "verify": (["db", "verify", "db.h5", "-q"], []),
    "fetch": (["db", "fetch", "db.h5", "s1_3", "-o", "a.fasta"], ["a.fasta"]),
    "align": (["align", "queries.fasta", "more.fasta", "-o", "a.txt", "-q"], ["a.txt"]),
    "version": (["--version"], []),
}
"""Commands, and the files that they make."""

SMALL_FILES = ["reports", "parquet", "build", "append", "remove", "merge", "fetch", "align"]

INTERPRETER = 1.25
"""A limit begins where the interpreter alone starts, times this."""


class Limits(Kind):
    """Memory: 0 with the right bytes, or 4. Files: 0 with the right bytes, or 6. One sentence, nothing left."""

    name = "limits"
    what = "limits of memory (RLIMIT_AS) from what the interpreter needs upwards, of file sizes, and a full disk"
    counts = (1, 40, 300)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        make_inputs(folder)
        self.outputs: dict[str, tuple[Done, Path]] = {}
        low, high = MIB, 1024 * MIB
        while high - low > MIB:
            middle = (low + high) // 2
            enough = self._starts(middle)
            low, high = (low, middle) if enough else (middle, high)
        self.least = int(high * INTERPRETER)

    def _starts(self, limit: int) -> bool:
        alone = Process([], self.folder, program=[sys.executable, "-c", "pass"], limits={resource.RLIMIT_AS: limit})
        return alone.end().code == 0

    def _ordinary(self, name: str) -> tuple[Done, Path]:
        """Return what a command does without a limit, and the folder of what it writes."""
        if name not in self.outputs:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            copy_inputs(self.folder, folder)
            self.outputs[name] = succeed(command(*COMMANDS[name][0], cwd=folder)), folder
        return self.outputs[name]

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Run a command under a limit."""
        generator = self.generator(seed)
        kind = generator.choice(["memory", "memory", "memory", "file", "full"])
        if kind == "full":
            return self._full(generator.choice(["search", "align", "fetch"]), folder)
        if kind == "memory":
            name = generator.choice(list(COMMANDS))
            most = generator.choice([self.least, 200 * MIB, 400 * MIB]) + generator.randrange(400 * MIB)
            limits = {resource.RLIMIT_AS: most}
        else:
            name = generator.choice(SMALL_FILES)
            most = generator.randint(4096, 80_000)  # messages are written to files here, and are to fit
            limits = {resource.RLIMIT_FSIZE: most}
        copy_inputs(self.folder, folder)
        done = Process(COMMANDS[name][0], folder, limits=limits).end()
        with told_of(f"{name}, {kind} limit {most / MIB:.2f} MiB"):
            check_end(done)
            if done.code:
                check_refusal(done, [4] if kind == "memory" else [6])
                check_left(folder, *INPUTS)
                if (folder / "db.h5").read_bytes() != (self.folder / "db.h5").read_bytes():
                    raise Wrong("the database is another one")
                return refused()
            check_left(folder, *INPUTS, *COMMANDS[name][1])
            self._compare(name, done, folder)
        return succeeded()

    def _compare(self, name: str, done: Done, folder: Path) -> None:
        ordinary, beside = self._ordinary(name)
        if done.out != ordinary.out:
            raise Wrong("other output on stdout than without a limit")
        for each in COMMANDS[name][1]:
            if Path(each).suffix in (".html", ".h5", ".json", ".parquet"):  # they hold the time
                continue
            if (folder / each).read_bytes() != (beside / each).read_bytes():
                raise Wrong(f"{each} differs from that of a run without a limit")

    def _full(self, name: str, folder: Path) -> Verdict:
        copy_inputs(self.folder, folder)
        words = [word for word in COMMANDS[name][0] if word not in ("-o", *COMMANDS[name][1])]
        done = Process([*words, "-o", "/dev/full"], folder).end()
        with told_of(f"{name} -o /dev/full"):
            check_end(done)
            check_refusal(done, [6])
            check_left(folder, *INPUTS)
        return refused()
