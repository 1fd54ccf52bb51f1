"""Lines of SAM and PAF, of a search's hits and of pairs: the subject is the reference (target), the query the read.

Runs of pairs, equal or not, are ``M``, which every reader of these formats knows; the SAM tag MD says which of
them differ. Query residues outside the alignment are soft-clipped (``S``); subject residues outside it are not
part of a SAM line. Strands are forward but in PAF of translated DNA.

SAM was made for nucleotides. Proteins may stand in it: its text allows every letter but ``*``. Readers get names,
places, CIGAR and tags right, but those that hold reads as BAM does (samtools, pysam) turn amino acids into N. MD
is left out for proteins, since Biopython reads only bases in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.report.portions import AlignedPortion
from swsearch.translation.frame import CODON

UNMAPPED, SECONDARY = 4, 256
"""Bits of SAM's flag."""

NO_QUALITY = 255
"""Mapping quality that is not available."""


class Aligned(NamedTuple):
    """What a line says of an alignment: as of a `PairAlignment`, and the lengths of both sequences.

    Places and lengths are nucleotides where a sequence is translated DNA, of which each column has 3.
    """

    score: float
    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    length: int
    identities: int
    gaps: int
    cigar: str
    query_length: int
    subject_length: int
    strand: str = "+"
    nucleotides: int = 1

    @classmethod
    def of(cls, pair: PairAlignment) -> Aligned:
        """Return it of an alignment."""
        return cls(
            pair.scoring.shown(pair.score), pair.query_start, pair.query_end, pair.subject_start, pair.subject_end,
            pair.length,
            pair.identities, pair.gaps, pair.cigar_string, len(pair.query), len(pair.subject),
        )  # fmt: skip

    @property
    def has_pairs(self) -> bool:
        """Whether any column holds two residues."""
        return self.length > self.gaps

    @property
    def differences(self) -> int:
        """The edit distance of the aligned parts: pairs of unlike letters, and residues opposite a gap."""
        return self.length - self.identities


def aligned_of(portion: AlignedPortion, *, on_part: bool = False) -> Iterator[Aligned]:
    """Yield what lines say of a portion's alignments; of a part of the query with places on it, or on the whole."""
    found, of = portion.alignments, portion.result
    spans = (found.query_start, found.query_end) if on_part else portion.query_spans
    lengths = np.full(len(portion), of.query_length) if on_part else portion.query_lengths
    backwards = (portion.query_frames < 0) != (portion.subject_frames < 0)
    columns = zip(
        found.score.tolist(),
        *(ends.tolist() for ends in spans),
        *(ends.tolist() for ends in portion.subject_spans),
        found.length.tolist(),
        found.identities.tolist(),
        found.gaps.tolist(),
        found.cigar_strings(),
        lengths.tolist(),
        portion.subject_lengths[portion.hit_of_line].tolist(),
        np.where(backwards, "-", "+").tolist(),
        [CODON if of.has_query_frames or of.has_subject_frames else 1] * len(portion),
        strict=True,
    )
    return map(Aligned._make, columns)


def score_tag(score: float) -> str:
    """Return the tag of a score; of gap costs that are fractions it is one."""
    return f"AS:i:{score}" if isinstance(score, int) else f"AS:f:{score}"


def mapped_line(of: Aligned, read: str, reference: str, flag: int, letters: str, *tags: str) -> str:
    """Return the SAM line of a pair with at least one column of two residues; AS and NM are the first of its tags."""
    after = of.query_length - of.query_end
    cigar = f"{f'{of.query_start}S' if of.query_start else ''}{of.cigar}{f'{after}S' if after else ''}"
    own = score_tag(of.score), f"NM:i:{of.differences}"
    place = f"{reference}\t{of.subject_start + 1}\t{NO_QUALITY}\t{cigar}"
    return "\t".join((f"{read}\t{flag}\t{place}\t*\t0\t0\t{letters}\t*", *own, *tags)) + "\n"


def unmapped_line(read: str, flag: int, letters: str, *tags: str) -> str:
    """Return the SAM line of a read that aligns with nothing."""
    fields = (read, flag | UNMAPPED, "*", 0, NO_QUALITY, "*", "*", 0, 0, letters or "*", "*")
    return "\t".join(map(str, (*fields, *tags))) + "\n"


def paf_line(of: Aligned, query: str, subject: str, *tags: str) -> str:
    """Return a pair's PAF line; ``tags`` stand between NM and cg."""
    if not of.has_pairs:
        nothing = "0\t0\t*\t*\t0\t0\t0\t0\t0\t0"
        return "\t".join((f"{query}\t{of.query_length}\t{nothing}\t{score_tag(of.score)}", *tags)) + "\n"
    places = (
        f"{query}\t{of.query_length}\t{of.query_start}\t{of.query_end}\t{of.strand}\t"
        f"{subject}\t{of.subject_length}\t{of.subject_start}\t{of.subject_end}"
    )
    own = f"{score_tag(of.score)}\tNM:i:{of.differences}"
    counts = f"{of.identities * of.nucleotides}\t{of.length * of.nucleotides}\t{NO_QUALITY}\t{own}"
    return "\t".join((places, counts, *tags, f"cg:Z:{of.cigar}")) + "\n"


def md_tag(pair: PairAlignment) -> str:
    """Return SAM's MD: lengths of runs of identities, unlike subject letters, deleted ones after ``^``."""
    top, _, bottom = (np.frombuffer(row.encode("ascii"), dtype=np.uint8) for row in pair.rows())
    kept = bottom != ord("-")
    top, bottom = top[kept], bottom[kept]
    at = np.flatnonzero(pair.unlike[kept])
    letters = bottom[at].tobytes().decode("ascii")
    parts: list[str] = []
    begin, deleting = 0, False
    for column, letter, deleted in zip(at.tolist(), letters, (top[at] == ord("-")).tolist(), strict=True):
        if not (deleted and deleting and column == begin):
            parts.append(f"{column - begin}^" if deleted else str(column - begin))
        parts.append(letter)
        begin, deleting = column + 1, deleted
    return "".join([*parts, str(len(bottom) - begin)])
