"""SAM and PAF of pairs: the subject is the reference (target), the query the read.

The lines are those of a search too, in `swsearch.report`.

Runs of pairs, equal or not, are ``M``, which every reader of these formats knows; the SAM tag MD says which of
them differ. Query residues outside the alignment are soft-clipped (``S``); subject residues outside it are not
part of a SAM line. Strands are always forward.

SAM was made for nucleotides. Proteins may stand in it: its text allows every letter but ``*``. Readers get names,
places, CIGAR and tags right, but those that hold reads as BAM does (samtools, pysam) turn amino acids into N. MD
is left out for proteins, since Biopython reads only bases in it.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alphabet import DNA
from swsearch.errors import InputError
from swsearch.inputs import Query
from swsearch.report.pair_formats import AlignmentWriter

UNMAPPED, SECONDARY = 4, 256
"""Bits of SAM's flag."""

NO_QUALITY = 255
"""Mapping quality that is not available."""

_REFERENCE_NAME = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
"""Names that the SAM specification (section 1.2.1) allows for references."""

_READ_NAME = re.compile(r"[!-?A-~]{1,254}")
"""Names that the SAM specification (section 1.4) allows for reads."""


class SamWriter(AlignmentWriter):
    """SAM 1.6 with the tags AS (score), NM (differences) and, for DNA, MD (which subject letters differ).

    A read has one primary line, its first; those to further subjects are marked secondary, whatever their scores,
    since lines are written as they are found. A pair without a column of two residues is an unmapped read.
    """

    _last: Query | None = None

    def begin(self) -> str:
        """Return the header lines; see `PairWriter.begin`."""
        from swsearch import __version__

        run = self.run
        self._check_names()
        lines = ["@HD\tVN:1.6\tSO:unsorted\tGO:query"]
        # a reference without residues has no place in SAM, and nothing aligns to it
        lines += [f"@SQ\tSN:{s.identifier}\tLN:{len(s.codes)}" for s in run.subjects if len(s.codes)]
        how = run.recurrence.describe()
        if run.recurrence.scoring.matrix.alphabet.name == "protein":
            how += "; protein sequences, of which BAM and what reads SAM as it does keep no letters"
        # in a field of @PG rather than in @CO, whose free text Biopython does not read
        lines.append(f"@PG\tID:swsearch\tPN:swsearch\tVN:{__version__}\tDS:{how}")
        return "\n".join(lines) + "\n"

    def _check_names(self) -> None:
        for subject in self.run.subjects:
            if not _REFERENCE_NAME.fullmatch(subject.identifier):
                raise InputError(
                    f"outfmt sam: subject {subject.identifier!r} has a name that SAM does not allow for a reference "
                    "(blanks, commas, quotes, brackets, or a leading * or =); rename it, or use --outfmt paf"
                )
        (name, count), *_ = Counter(subject.identifier for subject in self.run.subjects).most_common(1)
        if count > 1:
            raise InputError(
                f"outfmt sam: {count} subjects are named {name!r}, SAM expects names of references to differ; rename "
                "them, or use --outfmt paf"
            )
        star = self.run.recurrence.scoring.matrix.alphabet.letters.find("*")
        for query in self.run.queries:
            if not _READ_NAME.fullmatch(query.identifier):
                raise InputError(
                    f"outfmt sam: query {query.identifier!r} has a name that SAM does not allow for a read (at most "
                    "254 printable characters, no @); rename it, or use --outfmt paf"
                )
            stop = np.flatnonzero(query.codes == star)
            if len(stop):
                raise InputError(
                    f"outfmt sam: query {query.identifier!r} has '*' at position {stop[0] + 1}, which SAM does not "
                    "allow in a sequence; remove it, or use --outfmt paf"
                )

    def show(self, pair: PairAlignment, query: Query, subject: Query) -> str:
        """See `AlignmentWriter.show`."""
        flag = SECONDARY if query is self._last else 0
        self._last = query
        letters = pair.scoring.matrix.alphabet.decode(query.codes)
        if not has_pairs(pair):
            return unmapped_line(query.identifier, flag, letters, f"AS:i:{pair.score}")
        tags = [f"MD:Z:{md_tag(pair)}"] if pair.scoring.matrix.alphabet is DNA else []
        return mapped_line(pair, query.identifier, subject.identifier, flag, letters, *tags)


class PafWriter(AlignmentWriter):
    """PAF (minimap2's): 12 columns, then AS:i (score), NM:i (differences) and cg:Z (CIGAR).

    Coordinates are 0-based half-open; the block length counts gaps. A pair without a column of two residues has
    ``*`` for its subject, as minimap2 writes it with --paf-no-hit.
    """

    def show(self, pair: PairAlignment, query: Query, subject: Query) -> str:
        """See `AlignmentWriter.show`."""
        return paf_line(pair, query.identifier, subject.identifier)


def mapped_line(pair: PairAlignment, read: str, reference: str, flag: int, letters: str, *tags: str) -> str:
    """Return the SAM line of a pair with at least one column of two residues; AS and NM are the first of its tags."""
    behind = len(pair.query) - pair.query_end
    clips = [f"{count}S" if count else "" for count in (pair.query_start, behind)]
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
    """Return SAM's MD: lengths of runs of equal letters, unlike subject letters, deleted ones behind ``^``."""
    top, _, bottom = (np.frombuffer(row.encode("ascii"), dtype=np.uint8) for row in pair.rows())
    kept = bottom != ord("-")
    top, bottom = top[kept], bottom[kept]
    at = np.flatnonzero(top != bottom)
    letters = bottom[at].tobytes().decode("ascii")
    parts: list[str] = []
    begin, deleting = 0, False
    for column, letter, deleted in zip(at.tolist(), letters, (top[at] == ord("-")).tolist(), strict=True):
        if not (deleted and deleting and column == begin):
            parts.append(f"{column - begin}^" if deleted else str(column - begin))
        parts.append(letter)
        begin, deleting = column + 1, deleted
    return "".join([*parts, str(len(bottom) - begin)])
