"""Lines of SAM and PAF, of a search's hits and of pairs: the subject is the reference (target), the query the read.

Runs of pairs, equal or not, are ``M``, which every reader of these formats knows; the SAM tag MD says which of
them differ. Query residues outside the alignment are soft-clipped (``S``); subject residues outside it are not
part of a SAM line. Strands are always forward.

SAM was made for nucleotides. Proteins may stand in it: its text allows every letter but ``*``. Readers get names,
places, CIGAR and tags right, but those that hold reads as BAM does (samtools, pysam) turn amino acids into N. MD
is left out for proteins, since Biopython reads only bases in it.
"""

from __future__ import annotations

import numpy as np

from swsearch.alignment import PairAlignment

UNMAPPED, SECONDARY = 4, 256
"""Bits of SAM's flag."""

NO_QUALITY = 255
"""Mapping quality that is not available."""


def mapped_line(pair: PairAlignment, read: str, reference: str, flag: int, letters: str, *tags: str) -> str:
    """Return the SAM line of a pair with at least one column of two residues; AS and NM are the first of its tags."""
    after = len(pair.query) - pair.query_end
    clips = [f"{count}S" if count else "" for count in (pair.query_start, after)]
    cigar = f"{clips[0]}{pair.cigar_string}{clips[1]}"
    fields = (read, flag, reference, pair.subject_start + 1, NO_QUALITY, cigar, "*", 0, 0, letters, "*")
    own = (f"AS:i:{pair.score}", f"NM:i:{differences(pair)}")
    return "\t".join(map(str, (*fields, *own, *tags))) + "\n"


def unmapped_line(read: str, flag: int, letters: str, *tags: str) -> str:
    """Return the SAM line of a read that aligns with nothing."""
    fields = (read, flag | UNMAPPED, "*", 0, NO_QUALITY, "*", "*", 0, 0, letters or "*", "*")
    return "\t".join(map(str, (*fields, *tags))) + "\n"


def paf_line(pair: PairAlignment, query: str, subject: str, *tags: str) -> str:
    """Return a pair's PAF line; ``tags`` stand between NM and cg."""
    fields: list[str | int]
    if not has_pairs(pair):
        fields = [query, len(pair.query), 0, 0, "*", "*", 0, 0, 0, 0, 0, 0, f"AS:i:{pair.score}", *tags]
    else:
        fields = [query, len(pair.query), pair.query_start, pair.query_end, "+"]
        fields += [subject, len(pair.subject), pair.subject_start, pair.subject_end]
        fields += [pair.identities, pair.length, NO_QUALITY, f"AS:i:{pair.score}", f"NM:i:{differences(pair)}"]
        fields += [*tags, f"cg:Z:{pair.cigar_string}"]
    return "\t".join(map(str, fields)) + "\n"


def has_pairs(pair: PairAlignment) -> bool:
    """Say whether any column holds two residues."""
    return any(op == "M" for _, op in pair.cigar)


def differences(pair: PairAlignment) -> int:
    """Return the edit distance of the aligned parts: pairs of unlike letters, and residues opposite a gap."""
    return pair.length - pair.identities


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
