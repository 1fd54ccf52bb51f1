"""Shared code of all kinds of fault: verdicts, and behaviour that no command may show."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, NamedTuple

from faults.running import Done, Wrong

MIB = 1 << 20
MORE_MEMORY = 100 * MIB
"""Bytes of memory that a fault may cost, above the ordinary."""

ERROR = "swsearch: error: "
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Verdict(NamedTuple):
    """How a case ended."""

    kind: str
    """"succeeded" and "refused" where that was right, "open" where something was wrong."""
    note: str = ""


def refused() -> Verdict:
    """The case was refused, rightly."""
    return Verdict("refused")


def succeeded() -> Verdict:
    """The case came to its end, rightly."""
    return Verdict("succeeded")


@contextmanager
def told_of(where: str) -> Iterator[None]:
    """Let what is wrong inside begin with where it was."""
    try:
        yield
    except Wrong as wrong:
        raise Wrong(f"{where}: {wrong}") from None


class Kind:
    """A kind of fault.

    Parameters
    ----------
    folder : Path
        Where what all of its cases need is put; the cases have folders of their own.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    """Description of a case, for the table."""
    counts: ClassVar[tuple[int, int, int]]
    """Cases of a quick run, of an exhaustive one, and of the long one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def generator(self, seed: int) -> random.Random:
        """Return what all choices of a case come from."""
        return random.Random(f"{self.name} {seed}")

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Run a case in an empty folder; raise `Wrong` where something else happens than may."""
        raise NotImplementedError


def check_end(done: Done, ordinary: int = 0) -> None:
    """Raise unless a command ended in time, without a signal or a traceback, and in not much more memory."""
    if done.late:
        raise Wrong(f"still ran after {done.seconds:.0f} s")
    if done.code < 0:
        raise Wrong(f"ended by signal {-done.code}: {done.err[-300:]}")
    if "Traceback" in done.err or "Exception ignored" in done.err:
        raise Wrong(f"traceback, exit {done.code}: {tail(done.err)}")
    if found := _CONTROL.search(done.err):
        raise Wrong(f"control character {found[0]!r} in a message: {done.err[:300]!r}")
    if ordinary and done.peak > ordinary + MORE_MEMORY:
        raise Wrong(f"took {(done.peak - ordinary) / MIB:.0f} MiB more than usual")


def check_success(done: Done) -> None:
    """Raise unless a command succeeded."""
    if done.code:
        raise Wrong(f"exit {done.code}: {tail(done.err)}")


def check_refusal(done: Done, codes: Iterable[int], *places: str) -> None:
    """Raise unless a command ended with one of the codes and one sentence that names all places."""
    if done.code not in codes:
        raise Wrong(f"exit {done.code}, expected {' or '.join(map(str, codes))}: {tail(done.err)}")
    errors = [line for line in done.err.splitlines() if line.startswith(ERROR)]
    if len(errors) != 1:
        raise Wrong(f"{len(errors)} sentences with exit {done.code}: {tail(done.err)!r}")
    for place in places:
        if place not in errors[0]:
            raise Wrong(f"the message does not name {place}: {errors[0]!r}")


def check_left(folder: Path, *expected: str) -> None:
    """Raise unless a folder holds exactly these files."""
    found = sorted(path.name for path in folder.iterdir())
    if found != sorted(expected):
        raise Wrong(f"files left: {', '.join(found) or 'none'}; expected {', '.join(sorted(expected)) or 'none'}")


def tail(text: str) -> str:
    """Return the end of a text."""
    return text.strip()[-400:]
