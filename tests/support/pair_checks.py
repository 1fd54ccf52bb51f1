"""Shared code of pair tests: rescoring, aligners of others, genomes."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

import numpy as np
import parasail
from Bio.Align import PairwiseAligner, substitution_matrices

from swsearch.alphabet import DNA, ByteArray
from swsearch.options.kinds import Mode
from swsearch.scoring import Ends, Scoring, check_ends


def rescore(
    query: ByteArray, subject: ByteArray, scoring: Scoring, cigar: str, query_start: int = 0, subject_start: int = 0
) -> int:
    """Add up a CIGAR's score, one operation at a time; S skips, and everything must fit inside."""
    total, i, j = 0, query_start, subject_start
    for number, op in re.findall(r"(\d+)(.)", cigar):
        n = int(number)
        if op in "M=X":
            total += int(scoring.matrix.scores[query[i : i + n], subject[j : j + n]].sum())
        elif op in "ID":
            total -= scoring.gap_open + n * scoring.gap_extend
        i += n if op in "M=XIS" else 0
        j += n if op in "M=XD" else 0
    assert i <= len(query)
    assert j <= len(subject)
    return total


def biopython_aligner(scoring: Scoring, mode: Mode, ends: Ends | None = None) -> PairwiseAligner:
    """Set up Biopython's aligner: ``align(subject, query)``."""
    letters = scoring.matrix.alphabet.letters
    n = len(letters)
    table = substitution_matrices.Array(letters, dims=2)
    table[:, :] = scoring.matrix.scores[:n, :n]
    aligner = PairwiseAligner(mode="local" if mode == "local" else "global", substitution_matrix=table)
    aligner.open_gap_score = -scoring.gap_first
    aligner.extend_gap_score = -scoring.gap_extend
    free = check_ends(mode, ends)
    # a query residue opposite a gap is an insertion, older Biopythons say a gap in the target
    sides = {
        ("left", "insertion", "target"): free.query_start,
        ("right", "insertion", "target"): free.query_end,
        ("left", "deletion", "query"): free.subject_start,
        ("right", "deletion", "query"): free.subject_end,
    }
    for (side, operation, sequence), is_free in sides.items():
        if mode == "semiglobal" and is_free:
            new, old = f"{side}_{operation}_score", f"{sequence}_{side}_gap_score"
            # asked of the class, since reading it from an aligner may raise
            setattr(aligner, new if hasattr(type(aligner), new) else old, 0.0)
    return aligner


def biopython_score(aligner: PairwiseAligner, query: str, subject: str) -> float:
    """Return the score of Biopython's alignment.

    Its ``score`` method is not asked: with linear gap costs and some ends free it finds more than any alignment has
    (Biopython 1.88: R and A at -1 a gap residue, only the right ends free: 0 instead of -1).
    """
    return float(aligner.align(subject, query).score)


def parasail_align(query: ByteArray, subject: ByteArray, scoring: Scoring, mode: Mode) -> tuple[int, int]:
    """Align with parasail's own Python interface: return its score, and that of its CIGAR added up again."""
    letters = scoring.matrix.alphabet.letters.replace("*", "")
    matrix = parasail.matrix_create(letters, 1, -1)
    for i, a in enumerate(letters):
        for j, b in enumerate(letters):
            matrix.set_value(i, j, scoring.matrix[a, b])
    prefix = {"local": "sw", "global": "nw", "semiglobal": "sg"}[mode]
    trace = getattr(parasail, f"{prefix}_trace_scan_32")
    decode = scoring.matrix.alphabet.decode
    result = trace(decode(query), decode(subject), scoring.gap_first, scoring.gap_extend, matrix)
    cigar = result.cigar
    runs = [(word >> 4, "MIDNSHP=XB"[word & 15]) for word in cigar.seq]
    i, j = cigar.beg_query, cigar.beg_ref
    # its CIGAR begins at the start of both sequences and, in semi-global mode, goes on to the end of both: the way
    # there is not part of a local alignment, and in semi-global mode the outermost gap is free
    while mode != "global" and runs and runs[0][1] in "ID":
        n, op = runs.pop(0)
        i, j = i + (n if op == "I" else 0), j + (n if op == "D" else 0)
        if mode == "semiglobal":
            break
    if mode == "semiglobal" and runs and runs[-1][1] in "ID":
        runs.pop()
    text = "".join(f"{n}{op}" for n, op in runs)
    return result.score, rescore(query, subject, scoring, text, i, j)


def read_genomes(folder: Path, name: str) -> dict[str, ByteArray]:
    """Read the records of a compressed FASTA file of DNA."""
    entries = lzma.decompress((folder / "genomes" / name).read_bytes()).decode().split(">")[1:]
    parts = [entry.partition("\n") for entry in entries]
    return {header.split()[0]: DNA.encode(letters) for header, _, letters in parts}


def write_fasta(path: Path, sequences: dict[str, str]) -> Path:
    """Write sequences as FASTA."""
    path.write_text("".join(f">{name}\n{letters}\n" for name, letters in sequences.items()))
    return path


def relatives(generator: np.random.Generator, length: int, letters: int) -> tuple[ByteArray, ByteArray]:
    """Make two sequences that share most residues, with a few gaps."""
    first = generator.integers(0, letters, length).astype(np.uint8)
    changed = generator.random(length) < 0.2
    second = np.where(changed, generator.integers(0, letters, length), first).astype(np.uint8)
    for _ in range(int(generator.integers(0, 4))):
        at, size = int(generator.integers(0, length + 1)), int(generator.integers(1, 12))
        second = np.concatenate((second[:at], second[at + size :]))
    return first, second
