"""The disk that a build takes: said before the work begins where it is known, and watched while inputs are read."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from swsearch.db.inputs import plain_size
from swsearch.db.spool import Spool
from swsearch.errors import OutputError

SAMPLE_BYTES = 1 << 14
"""Bytes of each part of a file that is looked at."""

WINDOWS = 64
"""Parts of a large file that are looked at, evenly over it: a file may be sorted by length."""

MOST_PER_BYTE = 16
"""Bytes of disk that a byte of FASTA can take, with room to spare: records of one letter and one residue take 14."""

ENOUGH_OF_NEED = 0.9
"""Share of what is needed that must be free: parts of a file stand for the whole of it, and a small database takes
less, because nothing is written once more."""

NUMBERS_SPOOLED = 8
"""Bytes of a record in temporary files besides its residues and its header: their lengths."""

NUMBERS_REGROUPED = 12
"""Bytes of a record that are written once more with its residues: its place and its length."""

NUMBERS_STORED = 28
"""Bytes of a record in the database besides its residues and its header: place, length, two offsets."""

RUN_SPOOLED, RUN_STORED = 16, 8
"""Bytes of a masked run in temporary files, and in the database."""


@dataclass(frozen=True)
class Amount:
    """How much of what there is to store.

    Parameters
    ----------
    records, residues, header_bytes : float
        Of all inputs.
    runs : float, optional
        Masked runs.
    """

    records: float
    residues: float
    header_bytes: float
    runs: float = 0

    @classmethod
    def of(cls, spool: Spool) -> Amount:
        """Return what a spool holds."""
        return cls(spool.n_subjects, spool.n_residues, spool.n_header_bytes, len(spool.masks))

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.records + other.records,
            self.residues + other.residues,
            self.header_bytes + other.header_bytes,
            self.runs + other.runs,
        )

    @property
    def spooled(self) -> int:
        """Bytes of the temporary files while inputs are read."""
        return int(self.residues + self.header_bytes + NUMBERS_SPOOLED * self.records + RUN_SPOOLED * self.runs)

    @property
    def stored(self) -> int:
        """Bytes of the database, padding of blocks left out."""
        return int(self.residues + self.header_bytes + NUMBERS_STORED * self.records + RUN_STORED * self.runs)

    @property
    def at_once(self) -> int:
        """Most bytes on disk at any moment of a build: at its end, residues have left their first temporary file."""
        return self.spooled + int(NUMBERS_REGROUPED * self.records) + self.stored


def shown_bytes(n: float) -> str:
    """Write a number of bytes as people read it."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n >= size:
            return f"{n / size:,.1f} {unit}"
    return f"{n:,.0f} bytes"


class DiskWatch:
    """Compares what a build takes with what is free where it writes.

    Parameters
    ----------
    output : path, optional
        The database; None for one that goes to temporary files.
    memory : int
        Size in bytes up to which such a database is held in memory.
    more : int, optional
        Bytes that are written besides: a database that is copied.
    volume : int, optional
        Most bytes of a volume, if there are volumes: what was read stays in its temporary files until the last one is
        written, so that the residues of each are on the disk once more meanwhile.
    """

    def __init__(self, output: Path | None, memory: int, more: int = 0, volume: int = 0) -> None:
        self._output, self._memory, self._more, self._volume = output, memory, more, volume
        self._folder = Path(tempfile.gettempdir()) if output is None else output.parent

    def check_before(self, inputs: list[str]) -> None:
        """Raise `OutputError` if what plain files will take is more than is free.

        Other inputs do not say how much they hold, and count nothing here.
        """
        free = self._free()
        sizes = [plain_size(name) for name in inputs]
        if free is None or sum(sizes) * MOST_PER_BYTE + self._more < free:
            return
        whole = Amount(0, 0, 0)
        for name, size in zip(inputs, sizes, strict=True):
            if size:
                whole += estimate(name, size)
        self._check(self._need(whole), 0, free, "will take about")

    def check(self, spool: Spool) -> None:
        """Raise `OutputError` if what was read so far will take more than is free."""
        free = self._free()
        if free is not None:
            amount = Amount.of(spool)
            what = f"takes, for the {amount.residues:,} residues read so far,"
            self._check(self._need(amount), amount.spooled, free, what)

    def check_amount(self, amount: Amount, written: int) -> None:
        """Raise `OutputError` if what is known to come takes more than is free and was written."""
        free = self._free()
        if free is not None:
            self._check(self._need(amount), written, free, "takes")

    def _need(self, amount: Amount) -> int:
        if self._output is None and amount.stored <= self._memory:
            return amount.spooled
        return amount.at_once + self._more + min(self._volume, int(amount.residues))

    def _free(self) -> int | None:
        try:
            usage = shutil.disk_usage(self._folder)
        except OSError:
            return None
        return usage.free if usage.total else None  # some file systems say 0 for what they do not know

    def _check(self, need: int, written: int, free: int, what: str) -> None:
        if need * ENOUGH_OF_NEED - written > free:
            remedy = "set TMPDIR to another folder" if self._output is None else "choose another folder"
            shown = self._folder if self._output is None else self._output
            raise OutputError(
                f"{shown}: the build {what} {shown_bytes(need)} of disk, temporary files included, and"
                f" {shown_bytes(written + free)} are free for it; free space there or {remedy}"
            )


def estimate(name: str, size: int) -> Amount:
    """Estimate what a FASTA file holds from parts of it."""
    n_windows = min(-(-size // SAMPLE_BYTES), WINDOWS)
    seen = records = residues = header_bytes = 0
    try:
        with Path(name).open("rb", buffering=0) as file:
            for window in range(n_windows):
                file.seek(max(size * (2 * window + 1) // (2 * n_windows) - SAMPLE_BYTES // 2, 0))
                data = np.frombuffer(file.read(SAMPLE_BYTES), dtype=np.uint8)
                ends = np.flatnonzero((data == 10) | (data == 13))
                begins = np.append(0, ends + 1)  # the first line may be cut; so may the last
                lengths = np.diff(begins, append=len(data) + 1) - 1
                headers = np.zeros(len(begins), dtype=bool)
                inside = begins < len(data)
                headers[inside] = data[begins[inside]] == ord(">")
                records += int(headers.sum())
                header_bytes += int((lengths[headers] - 1).sum())
                residues += int(lengths[~headers].sum())
                seen += len(data)
    except OSError:  # the reader will say so
        return Amount(0, 0, 0)
    scale = size / max(seen, 1)
    return Amount(records * scale, residues * scale, header_bytes * scale)
