"""Pairs on the GPU: a long one alone, short ones many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from swsearch import reference
from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.engines.gpu.compiler import find_compiler
from swsearch.engines.gpu.device import Device, choose_device
from swsearch.engines.gpu.kernels import Kernels
from swsearch.engines.gpu.pairs.found import FoundAlignment
from swsearch.engines.gpu.pairs.handles import PairHandles, PairUsage, Scratch
from swsearch.engines.gpu.pairs.letters import letters_in, letters_of
from swsearch.engines.gpu.pairs.long_pair import LongPair
from swsearch.engines.gpu.pairs.plan import PAIR_MEMORY
from swsearch.engines.gpu.pairs.short_pairs import ShortPairs, size_of
from swsearch.engines.pair_base import Pair, PairAligner
from swsearch.errors import EngineError, OptionError
from swsearch.recurrence import Recurrence

SHORT_BYTES = 8 << 20
"""Most bytes of directions of a pair that one warp aligns: 4,096 by 4,096 residues."""

BATCH_PAIRS, BATCH_BYTES = 200_000, 64 << 20
"""Most pairs and residues that are aligned in one go."""


class GpuPairAligner(PairAligner):
    """Aligns on an NVIDIA GPU.

    Parameters
    ----------
    device : int, optional
        Which one; by default the first of those with the most multiprocessors.
    memory : int, optional
        Bytes of its memory that may be used; by default 3 GiB, or nearly all that is free if that is less.

    Raises
    ------
    GpuUnavailableError
        If there is no usable device, driver, PyCUDA or compiler.
    OptionError
        If there is no such device.
    """

    name = "gpu"

    def __init__(self, device: int | None = None, memory: int | None = None) -> None:
        if memory is not None and memory < 1:
            raise OptionError("gpu_memory", memory, "a positive number of bytes")
        self.info = choose_device(device)
        self.compiler = find_compiler(self.info.architecture, self.info.driver_version)
        self._device = Device(self.info)
        self.kernels = Kernels(self._device, self.compiler)
        self.usage = PairUsage()
        self._closed = False
        with self._device.active("setting up"):
            stream = self._device.stream()
        scratch = Scratch(self._device, PAIR_MEMORY if memory is None else memory)
        self._handles = PairHandles(self._device, self.kernels, stream, scratch, self.usage)

    @property
    def description(self) -> str:
        """Device, architecture and compiler."""
        return f"gpu ({self.info.name}, {self.info.architecture}, {self.compiler.description})"

    def align(self, query: ByteArray, subject: ByteArray, recurrence: Recurrence) -> PairAlignment:
        """See `PairAligner.align`."""
        return next(self.align_many([(query, subject)], recurrence))

    def score(self, query: ByteArray, subject: ByteArray, recurrence: Recurrence) -> int:
        """See `PairAligner.score`."""
        return next(self.score_many([(query, subject)], recurrence))

    def align_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[PairAlignment]:
        """See `PairAligner.align_many`."""
        for batch in _batches(pairs):
            for (query, subject), found in zip(batch, self._find(batch, recurrence, True), strict=True):
                yield PairAlignment(
                    query,
                    subject,
                    recurrence.scoring,
                    found.score,
                    found.query_start,
                    found.subject_start,
                    found.cigar,
                )

    def score_many(self, pairs: Iterable[Pair], recurrence: Recurrence) -> Iterator[int]:
        """See `PairAligner.score_many`."""
        for batch in _batches(pairs):
            yield from (found.score for found in self._find(batch, recurrence, False))

    def _find(self, pairs: list[Pair], recurrence: Recurrence, align: bool) -> list[FoundAlignment]:
        """Find the alignments of some pairs; only scores are sure where they are not asked for."""
        scoring, mode, ends = recurrence.scoring, recurrence.mode, recurrence.ends
        found: dict[int, FoundAlignment] = {}
        short: list[int] = []
        for place, (query, subject) in enumerate(pairs):
            if not len(query) or not len(subject):
                found[place] = FoundAlignment(*reference.align(query, subject, scoring, mode, ends))
                continue
            recurrence.lane_bits(len(query), len(subject))  # raises where 32 bits are not enough
            if len(pairs) > 1 and size_of((query, subject)) <= SHORT_BYTES:
                short.append(place)
            else:
                found[place] = self._find_long((query, subject), recurrence, align)
        if short:
            with self._device.active("aligning pairs"), self._handles.scratch.lent():
                together = ShortPairs(self._handles, recurrence)
                found.update(zip(short, together.align([pairs[place] for place in short]), strict=True))
        return [found[place] for place in range(len(pairs))]

    def _find_long(self, pair: Pair, recurrence: Recurrence, align: bool) -> FoundAlignment:
        """Do one pair with the whole device, and add its alignment up again."""
        letters = letters_of(recurrence.scoring, letters_in(pair[0]), letters_in(pair[1]))
        with self._device.active("aligning a pair"), self._handles.scratch.lent():
            one = LongPair(self._handles, pair, letters, recurrence)
            found = one.align() if align else FoundAlignment(one.score(), 0, 0, ())
        if align:
            aligned = PairAlignment(
                *pair, recurrence.scoring, found.score, found.query_start, found.subject_start, found.cigar
            )
            if aligned.rescored() != found.score:
                raise EngineError(
                    f"{self.info}: an alignment of {len(pair[0]):,} with {len(pair[1]):,} residues adds up to "
                    f"{aligned.rescored()} instead of its score {found.score}; please report it, and use --engine cpu"
                )
        return found

    def close(self) -> None:
        """Let go of the device."""
        if self._closed:
            return
        self._closed = True
        with self._device.active("closing"):
            self.kernels.close()
            del self._handles  # the stream ends while its context is current
        self._device.close()


def _batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Cut pairs into lists that are held in memory at a time."""
    batch: list[Pair] = []
    residues = 0
    for pair in pairs:
        batch.append(pair)
        residues += len(pair[0]) + len(pair[1])
        if len(batch) >= BATCH_PAIRS or residues >= BATCH_BYTES:
            yield batch
            batch, residues = [], 0
    if batch:
        yield batch
