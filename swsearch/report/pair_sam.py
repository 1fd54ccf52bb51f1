"""SAM and PAF of pairs; their lines are those of `swsearch.report.sam_lines`."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alphabet import DNA
from swsearch.errors import InputError
from swsearch.inputs import Query
from swsearch.report import headers, sam_lines
from swsearch.report.pair_writers import AlignmentWriter

_REFERENCE_NAME = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
"""Names that the SAM specification (section 1.2.1) allows for references."""

_READ_NAME = re.compile(r"[!-?A-~]{1,254}")
"""Names that the SAM specification (section 1.4) allows for reads."""


class PairSamWriter(AlignmentWriter):
    """SAM 1.6 with the tags AS (score), NM (differences) and, for DNA, MD (which subject letters differ).

    A read has one primary line, its first; those to further subjects are marked secondary, whatever their scores,
    since lines are written as they are found. A pair without a column of two residues is an unmapped read.
    """

    _last: Query | None = None

    def begin(self) -> str:
        """Return the header lines; see `PairWriter.begin`."""
        run = self.run
        self._check_names()
        lines = ["@HD\tVN:1.6\tSO:unsorted\tGO:query"]
        # a reference without residues has no place in SAM, and nothing aligns to it
        lines += [f"@SQ\tSN:{s.identifier}\tLN:{len(s.codes)}" for s in run.subjects if len(s.codes)]
        how = headers.one_line(run.recurrence.describe())  # which names the matrix's file
        if run.recurrence.scoring.matrix.alphabet.name == "protein":
            how += "; protein sequences, of which BAM and what reads SAM as it does keep no letters"
        # in a field of @PG rather than in @CO, whose free text Biopython does not read
        lines.append(f"@PG\tID:swsearch\tPN:swsearch\tVN:{run.version}\tDS:{how}")
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
                f"outfmt sam: {count} subjects are named {name!r}, expected unique names; rename them, or use "
                "--outfmt paf"
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
        flag = sam_lines.SECONDARY if query is self._last else 0
        self._last = query
        letters = pair.scoring.matrix.alphabet.decode(query.codes)
        aligned = sam_lines.Aligned.of(pair)
        if not aligned.has_pairs:
            return sam_lines.unmapped_line(query.identifier, flag, letters, sam_lines.score_tag(aligned.score))
        tags = [f"MD:Z:{sam_lines.md_tag(pair)}"] if pair.scoring.matrix.alphabet is DNA else []
        return sam_lines.mapped_line(aligned, query.identifier, subject.identifier, flag, letters, *tags)


class PairPafWriter(AlignmentWriter):
    """PAF (minimap2's): 12 columns, then AS:i (score), NM:i (differences) and cg:Z (CIGAR).

    Coordinates are 0-based half-open; the block length counts gaps. A pair without a column of two residues has
    ``*`` for its subject, as minimap2 writes it with --paf-no-hit.
    """

    def show(self, pair: PairAlignment, query: Query, subject: Query) -> str:
        """See `AlignmentWriter.show`."""
        names = (headers.identifier(one.identifier) for one in (query, subject))
        return sam_lines.paf_line(sam_lines.Aligned.of(pair), *names)
