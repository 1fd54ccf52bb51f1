"""The functions of the package that do the work: what ``import swsearch`` offers beside its classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swsearch.engines.choice import create_pair_aligner
from swsearch.errors import InputError
from swsearch.inputs import SequenceLike, read_queries
from swsearch.recurrence import Recurrence
from swsearch.scoring import Ends, Mode, Scoring

if TYPE_CHECKING:
    from Bio.Align import Alignment


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
        For the CPU: most threads, by default one per processor, and bytes that tables may take, 256 MiB by default.
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
    scoring = scoring or Scoring()
    recurrence = Recurrence(scoring, mode, Ends.parse(ends) if isinstance(ends, str) else ends)
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
        aligned = aligner.align(query, subject, recurrence)
    return aligned.to_biopython(pair[0].identifier, pair[1].identifier)
