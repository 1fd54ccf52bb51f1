"""Aligning pairs: one interface (`PairAligner`), several engines, and `swsearch.align` on top of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from swsearch import reference
from swsearch.alignment import PairAlignment, align_codes
from swsearch.alphabet import ByteArray
from swsearch.engines import choose, require_pycuda
from swsearch.engines.cpu import extension, tracing
from swsearch.engines.cpu.tracing import Pair
from swsearch.errors import InputError
from swsearch.processors import available_processors
from swsearch.scoring import Ends, Mode, Scoring, check_ends, check_mode

if TYPE_CHECKING:
    from Bio.Align import Alignment

    from swsearch.inputs import SequenceLike

Aligner = TypeVar("Aligner", bound="PairAligner")

GPU_WORTH_CELLS = 500_000_000
"""Cells of a job from which ``auto`` takes the GPU: it takes 0.3 to 0.5 s to start, time for a CPU to do as many."""

ALONE_CELLS = 64_000_000
"""Cells from which all threads work on one pair, about 15 ms of one; smaller ones are done side by side."""

BATCH_CELLS, BATCH_PAIRS = 250_000_000, 4_096
"""Cells for each thread, a tenth of a second, and pairs that are done in one call at most, so that results flow."""


class PairAligner(ABC):
    """Aligns or scores one pair after the other; a context manager.

    Of several equal alignments every engine returns the one that `swsearch.reference` states.
    """

    name: str
    """What ``--engine`` calls it."""
    fallback: str = ""
    """Why ``auto`` did not take the GPU; empty otherwise."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What runs, such as the library and the number of threads."""

    @abstractmethod
    def align(
        self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> PairAlignment:
        """Align two encoded sequences.

        Parameters
        ----------
        query, subject : ndarray, shape (n,), uint8
            Codes of the scoring's alphabet; may be empty.
        scoring : Scoring
            Matrix and gap costs.
        mode : {"local", "global", "semiglobal"}
            Which ends are free.
        ends : Ends, optional
            Which ends are free in semi-global mode; all four by default.

        Raises
        ------
        MemoryLimitError
            If the pair does not fit the memory allowed.
        EngineError
            If the device fails.
        """

    @abstractmethod
    def score(
        self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> int:
        """Score two encoded sequences without their alignment, in memory linear in their lengths; as `align`."""

    def align_many(
        self, pairs: Iterable[Pair], scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> Iterator[PairAlignment]:
        """Align (query, subject) pairs, in order; they are drawn as results are taken."""
        return (self.align(query, subject, scoring, mode, ends) for query, subject in pairs)

    def score_many(
        self, pairs: Iterable[Pair], scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> Iterator[int]:
        """Score (query, subject) pairs, in order; they are drawn as results are taken."""
        return (self.score(query, subject, scoring, mode, ends) for query, subject in pairs)

    def close(self) -> None:  # noqa: B027  # not every engine holds something
        """Let go of what the engine holds."""

    def __enter__(self: Aligner) -> Aligner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ReferencePairAligner(PairAligner):
    """The plain recurrence of `swsearch.reference`: slow, and the measure of every other engine."""

    name = "reference"

    @property
    def description(self) -> str:
        """What runs."""
        return "reference (plain Python, for tests)"

    def align(
        self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> PairAlignment:
        """See `PairAligner.align`."""
        return PairAlignment(query, subject, scoring, *reference.align(query, subject, scoring, mode, ends))

    def score(
        self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> int:
        """See `PairAligner.score`."""
        return reference.score(query, subject, scoring, mode, ends)


class CpuPairAligner(PairAligner):
    """Aligns on the CPU with the compiled extension: long pairs one by one, short ones many in a call.

    Parameters
    ----------
    memory : int, optional
        Bytes that the tables of all pairs that are worked on may take together.
    threads : int, optional
        At most this many; by default one a processor.
    """

    name = "cpu"

    def __init__(self, memory: int | None = None, threads: int | None = None) -> None:
        self.memory = tracing.DEFAULT_MEMORY if memory is None else memory
        self.threads = threads or available_processors()

    @property
    def description(self) -> str:
        """What computes, its instruction set and the number of threads."""
        plural = "" if self.threads == 1 else "s"
        return f"cpu (C++ extension, {extension.chosen()}, {self.threads} thread{plural})"

    def align(
        self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> PairAlignment:
        """See `PairAligner.align`; all threads work on the pair."""
        return align_codes(query, subject, scoring, mode, ends=ends, memory=self.memory, threads=self.threads)

    def score(
        self, query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> int:
        """See `PairAligner.score`; all threads work on the pair."""
        return tracing.score(query, subject, scoring, mode, self.memory, ends, self.threads)

    def align_many(
        self, pairs: Iterable[Pair], scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> Iterator[PairAlignment]:
        """See `PairAligner.align_many`."""
        for batch in self._batches(pairs):
            if self._is_alone(batch[0]):
                yield self.align(*batch[0], scoring, mode, ends)
                continue
            found = self._find(batch, scoring, mode, ends, path=True)
            for (query, subject), one in zip(batch, found, strict=True):
                yield PairAlignment(query, subject, scoring, *one)

    def score_many(
        self, pairs: Iterable[Pair], scoring: Scoring, mode: Mode, ends: Ends | None = None
    ) -> Iterator[int]:
        """See `PairAligner.score_many`."""
        for batch in self._batches(pairs):
            if self._is_alone(batch[0]):
                yield self.score(*batch[0], scoring, mode, ends)
                continue
            yield from (one[0] for one in self._find(batch, scoring, mode, ends, path=False))

    def _find(
        self, batch: Sequence[Pair], scoring: Scoring, mode: Mode, ends: Ends | None, *, path: bool
    ) -> Iterator[tracing.Traced]:
        memory = self.memory // self.threads
        return iter(tracing.find_many(batch, scoring, mode, memory, ends, self.threads, path=path))

    def _is_alone(self, pair: Pair) -> bool:
        """Say whether a pair takes all threads, or may take more than a thread's share of the memory."""
        m, n = len(pair[0]), len(pair[1])
        return m * n >= ALONE_CELLS or tracing.enough_memory(m, n) > self.memory // self.threads

    def _batches(self, pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
        """Yield runs of pairs that are done together, in order; a pair that is done alone is one of its own."""
        batch: list[Pair] = []
        cells = 0
        for pair in pairs:
            alone = self._is_alone(pair)
            if batch and (alone or cells >= BATCH_CELLS * self.threads or len(batch) >= BATCH_PAIRS):
                yield batch
                batch, cells = [], 0
            if alone:
                yield [pair]
                continue
            batch.append(pair)
            cells += len(pair[0]) * len(pair[1])
        if batch:
            yield batch


def create_pair_aligner(
    engine: str = "auto",
    *,
    threads: int | None = None,
    memory: int | None = None,
    device: int | None = None,
    gpu_memory: int | None = None,
    notice: Callable[[str], None] | None = None,
    cells: int | None = None,
    pairs: int = 1,
) -> PairAligner:
    """Make what aligns pairs.

    Parameters
    ----------
    engine : {"auto", "gpu", "cpu", "reference"}
        ``auto`` takes the GPU if it can be used and the work is worth starting it, and the CPU otherwise; why is
        then the aligner's ``fallback``.
    threads, memory : int, optional
        For the CPU: pairs at a time, and bytes that tables may take.
    device, gpu_memory, notice
        As for `swsearch.engines.create_engine`; with ``auto``, a GPU option means that the GPU is worth it.
    cells, pairs : int, optional
        Size of the work: query length times subject length over all pairs, and their number, which is only told.
        Unknown work is worth a GPU.

    Raises
    ------
    OptionError
        If there is no such engine or device, or an option does not go with the engine.
    GpuUnavailableError
        If the GPU is asked for by name and cannot be used.
    """
    asked = device is not None or gpu_memory is not None
    small = cells is not None and cells < GPU_WORTH_CELLS
    if engine == "auto" and small and not asked:
        made = create_pair_aligner("cpu", threads=threads, memory=memory)
        made.fallback = f"running on the CPU: {count_pairs(pairs)}, {cells:,} cells, are not worth starting a GPU"
        return made
    chosen, reason = choose(
        engine,
        gpu=lambda: _create_gpu(device, gpu_memory),
        cpu=lambda: CpuPairAligner(memory, threads),
        reference=ReferencePairAligner,
        threads=threads,
        gpu_options={"device": device, "gpu_memory": gpu_memory},
        notice=notice,
    )
    chosen.fallback = reason
    return chosen


def count_pairs(number: int) -> str:
    """Return ``1 pair`` or ``1,200 pairs``."""
    return f"{number:,} pair{'' if number == 1 else 's'}"


def _create_gpu(device: int | None, memory: int | None) -> PairAligner:
    require_pycuda()
    from swsearch.engines.gpu.pairs.aligner import GpuPairAligner

    return GpuPairAligner(device, memory)


def align(
    a: SequenceLike,
    b: SequenceLike,
    *,
    mode: Mode = "global",
    scoring: Scoring | None = None,
    ends: Ends | str | None = None,
    engine: str = "auto",
    threads: int | None = None,
    memory: int | None = None,
    device: int | None = None,
    gpu_memory: int | None = None,
) -> Alignment:
    """Align two sequences.

    Parameters
    ----------
    a, b : path, str, Bio.SeqRecord or (id, sequence)
        The query and the subject; a path must hold one record. See `swsearch.inputs.read_queries` for when a
        string is a path.
    mode : {"global", "local", "semiglobal"}
        Which ends are free: none, all and any part, all four ends.
    scoring : Scoring, optional
        BLOSUM62, 11, 1 by default. For DNA: ``Scoring(dna_matrix(), 10, 1)``. With ``gap_open=0`` gap costs are
        linear.
    ends : Ends or str, optional
        Which ends are free in semi-global mode, such as ``"subject"`` (the query fits whole into the subject) or
        ``"query-end, subject-start"``; see `swsearch.scoring.Ends`.
    engine : {"auto", "gpu", "cpu", "reference"}
        What aligns; ``auto`` is the GPU where there is one and the pair is long enough to gain from it.
    threads, memory : int, optional
        For the CPU: most threads, by default one a processor, and bytes that tables may take, 256 MiB by default.
    device, gpu_memory : int, optional
        For the GPU: which one, and bytes of its memory that may be used.

    Returns
    -------
    Bio.Align.Alignment
        Target is ``b``, query ``a``; its ``score`` is set.

    Raises
    ------
    InputError
        If a sequence cannot be read, or an option cannot be used.
    MemoryLimitError
        If the pair does not fit the memory allowed.
    """
    from swsearch.inputs import read_queries

    scoring = scoring or Scoring()
    check_mode(mode)
    free = check_ends(mode, Ends.parse(ends) if isinstance(ends, str) else ends)
    pair = []
    for name, sequence in (("a", a), ("b", b)):
        found = read_queries(sequence, scoring.matrix.alphabet, what=name)
        if len(found) != 1:
            raise InputError(f"{name}: got {len(found)} sequences, expected one")
        pair.append(found[0])
    query, subject = (one.codes for one in pair)
    made = create_pair_aligner(
        engine,
        threads=threads,
        memory=memory,
        device=device,
        gpu_memory=gpu_memory,
        cells=len(query) * len(subject),
    )
    with made as aligner:
        aligned = aligner.align(query, subject, scoring, mode, free)
    return aligned.to_biopython(pair[0].identifier, pair[1].identifier)
