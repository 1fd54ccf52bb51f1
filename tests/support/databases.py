"""Drawn records, databases of many segments, and all that a database gives."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.command_line import run
from swsearch.db import Database, verify_database

Entry = tuple[str, str]

TAXIDS = (9606, 10090, 562)
"""Taxa of drawn records, of those of `support.taxa`."""


def drawn(seed: object, n: int, longest: int = 300, kinds: int = 0, dna: bool = False) -> list[Entry]:
    """Draw records: parts in lower case, repeats, some without residues, one of ``kinds`` identifiers if given."""
    pick = random.Random(f"{seed}")
    alphabet = "ACGTN" if dna else "ACDEFGHIKLMNPQRSTVWYBXZ*"

    def letters() -> str:
        parts = ["".join(pick.choices(alphabet, k=pick.randint(0, longest // 3))) for _ in range(3)]
        parts[1] = parts[1].lower()
        parts[2] = parts[2][:1] * len(parts[2])
        return "".join(parts) if pick.random() < 0.9 else ""

    names = [f"s{pick.randrange(kinds) if kinds else place}_{'' if kinds else seed}" for place in range(n)]
    headers = [f"{name} {'x' * pick.randint(0, 90)} OX={pick.choice(TAXIDS)}" for name in names]
    return [(header, letters() or "M" * (place % 50 == 1)) for place, header in enumerate(headers)]


def written(path: Path, records: list[Entry]) -> Path:
    """Write records as FASTA."""
    path.write_text("".join(f">{header}\n{letters}\n" for header, letters in records))
    return path


def names(folder: Path) -> list[str]:
    """Return the names of the files of a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of the files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Failing:
    """Lets one of the calls that change files fail, and all later ones if it is the last; or end the process."""

    def __init__(
        self, patch: pytest.MonkeyPatch, names: Sequence[str], number: int, error: BaseException | None,
        is_last: bool = False,
    ) -> None:  # fmt: skip
        self.left, self._error, self._is_last = number, error, is_last
        for name in names:
            patch.setattr(os, name, partial(self._called, getattr(os, name)))

    def _called(self, call: Callable[..., object], *given: Any, **options: Any) -> object:
        self.left -= 1
        if self.left > 0 or (self.left and not self._is_last):
            return call(*given, **options)
        if self._error is None:
            os.kill(os.getpid(), signal.SIGKILL)
        raise self._error  # type: ignore[misc]


def entries(path: Path) -> list[Entry]:
    """Return the records of a database."""
    with Database.open(path) as database:
        return [(entry.header.decode(), entry.sequence) for entry in database]


def held(path: Path) -> list[Entry]:
    """Return the records of a database that is sound."""
    verify_database(path)
    return entries(path)


def content(path: Path) -> dict[str, Any]:
    """Return all that a database gives, but for how it is cut into segments and volumes."""
    records = held(path)
    with Database.open(path) as database:
        every = np.arange(len(database))
        chunks = [] if database.genetic_code else database.chunks(1 << 14)
        return {
            "facts": (database.mask, database.genetic_code, database.n_residues, database.lengths.tolist()),
            "records": records,
            "masked": [[database.masked_runs(k, mask) for k in every] for mask in ("lower", database.mask)],
            "taxa": [list(each) for each in database.taxa_of(every)],
            "residues": sorted(
                (subject, chunk.subject(place).tobytes())
                for chunk in chunks
                for place, subject in enumerate(chunk.subjects.tolist())
            ),
            "found": database.find_many([header.split()[0] for header, _ in records[::5]] + ["nobody"]),
            "sources": [(each["path"], each["records"], each["residues"]) for each in database.sources()],
            "fasta": run("db", "fetch", path, "--all").stdout,
        }


def cut_small(monkeypatch: pytest.MonkeyPatch, limit: int = 9_000) -> None:
    """Let databases have many segments."""
    for module in ("building", "editing"):
        monkeypatch.setattr(f"swsearch.db.{module}.segment_limit", lambda *given: limit)
