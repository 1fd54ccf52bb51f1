"""How fast devices turn out to be, and whether a database that is divided over them is better divided anew."""

from __future__ import annotations

from collections.abc import Sequence

from swsearch.engines.gpu.engine import GpuEngine

READ_RATE = 1e9
"""Bytes of a database that are read and copied once more in a second: an estimate, below what
`swsearch.engines.gpu.memory.CHUNK_BYTES` says was measured."""

WORTH = 1.1
"""How much longer than needed the devices must take before a database is divided anew: a choice; what is measured is
not exact, and no device gets more than some thousandths less than its share."""


LEAST_RUNS = 8
"""Runs of kernels of each device that are measured at least: those that have not ended are not in the measure."""


class Meter:
    """What a device's engine has done since it was looked at first.

    Parameters
    ----------
    engine : GpuEngine
        Of the device.

    Attributes
    ----------
    cells : int
        Query residues times subject residues.
    seconds : float
        In which kernels ran.
    runs : int
        Of kernels, each for a part of the queries and a chunk.
    """

    def __init__(self, engine: GpuEngine) -> None:
        self._usage = engine.usage
        self._before = self._now()
        self.cells, self.seconds, self.runs = 0, 0.0, 0

    def _now(self) -> tuple[int, float, int]:
        return self._usage.cells, self._usage.kernel_seconds, self._usage.n_runs

    def look(self) -> None:
        """Take in what was done meanwhile."""
        (cells, seconds, runs), before = self._now(), self._before
        self.cells, self.seconds, self.runs = cells - before[0], seconds - before[1], runs - before[2]


class Speeds:
    """The speeds of devices between which a database is divided.

    Parameters
    ----------
    engines : sequence of GpuEngine
        Those that have a part.
    residue_bytes : int
        Interleaved residues of the database.
    """

    def __init__(self, engines: Sequence[GpuEngine], residue_bytes: int) -> None:
        self._indices = [engine.info.index for engine in engines]
        self._meters = [Meter(engine) for engine in engines]
        self._cost = residue_bytes / READ_RATE

    def measured(self, times: int) -> list[float] | None:
        """Return each engine's speed, in cells per second, if the database is better divided by these speeds.

        It is once the time that was lost by dividing it wrongly is that of reading it again, so that never more is
        lost than twice as much as with the best decision. Engines that share a device are as fast as each other.

        Parameters
        ----------
        times : int
            How often it was divided anew so far: each time makes the next one harder.
        """
        for meter in self._meters:
            meter.look()
        cells: dict[int, int] = {}
        seconds: dict[int, float] = {}
        for index, meter in zip(self._indices, self._meters, strict=True):
            cells[index] = cells.get(index, 0) + meter.cells
            seconds[index] = max(seconds.get(index, 0.0), meter.seconds)
        if len(cells) < 2 or not all(cells.values()) or not all(seconds.values()):
            return None
        if any(meter.runs < LEAST_RUNS for meter in self._meters):
            return None
        speeds = {index: cells[index] / seconds[index] for index in cells}
        needed, taken = sum(cells.values()) / sum(speeds.values()), max(seconds.values())
        if taken < WORTH * needed or taken - needed < self._cost * 2**times:
            return None
        return [speeds[index] / self._indices.count(index) for index in self._indices]
