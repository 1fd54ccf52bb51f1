"""SAM of a search: the query is the read, the subject the reference; see also `swsearch.report.sam_lines`.

Tags are those of BLAST's own SAM (``blastn -outfmt 17``): AS (raw score), EV (E-value), NM (differences), PI (per
cent identity) and BS (bit score). diamond has the raw score in ZR, the bit score in AS and the E-value in ZE. What
reads SAM as BAM does (samtools, pysam) keeps numbers in 32 bits: E-values below 1e-45 become 0 there.
"""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from typing import IO, Any, ClassVar

from swsearch.report import headers, numbers, sam_lines
from swsearch.report.base import Writer
from swsearch.report.portions import AlignedPortion, aligned_portions
from swsearch.results import SearchResult
from swsearch.run_info import Program, RunInfo

_NOT_IN_REFERENCE = re.compile(r"[^0-9A-Za-z!#$%&+./:;?@^_|~*=-]")
_NOT_IN_READ = re.compile(r"[^!-?A-~]")
"""What the SAM specification (sections 1.2.1 and 1.4) allows in no name of a reference, and of a read."""

_READ_NAME_LENGTH = 254

SPOOL_BYTES = 64 << 20
"""Text that is kept in memory until the end; more goes to a temporary file."""


class SamWriter(Writer):
    """SAM 1.6: one line per alignment; as in BLAST's SAM, a query that found nothing has none.

    The header comes first and names the subjects that were hit, with length and (DS) title, so that all is written at
    the end; a whole database's names would be most of the file. A query's best alignment is its primary line, all
    others are marked secondary, and have ``*`` for the query's letters, as the specification recommends.

    A long search shall not fail for a name: characters that SAM does not allow become ``_``, names of queries are
    cut at 254, and a further subject of a name that is taken has its place in the database after a ``#``. ``*`` in
    a query becomes ``X``. DS has the subject's header as it was.
    """

    programs: ClassVar[tuple[Program, ...]] = ("blastp",)
    unsupported_remedy: ClassVar[str] = "use --outfmt paf, or a table with the columns qframe, sframe and cigar"

    def __init__(self, stream: IO[Any]) -> None:
        super().__init__(stream)
        self._lines: IO[str] | None = None
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._references: list[str] = []
        self._how = ""

    def begin(self, run: RunInfo) -> None:
        """Take note of how the search was made, for the header."""
        threshold = "" if run.evalue is None else f"; E <= {run.evalue:g}"
        asked = f"; {headers.asked(run.asked)}" if run.asked else ""
        how = (
            f"search of {run.database_name}, {run.database_subjects} subjects, {run.database_residues} residues; "
            f"{run.mode} alignment; {run.scoring.describe()}{threshold}; at most {run.max_hits} subjects a query"
            f"{asked}; protein sequences, of which BAM and what reads SAM as it does keep no letters"
        )
        self._lines = tempfile.SpooledTemporaryFile(SPOOL_BYTES, "w+", encoding="utf-8", newline="\n")  # noqa: SIM115
        self._how = f"VN:{run.version}\tDS:{headers.one_line(how)}"

    def write(self, result: SearchResult) -> None:
        """Keep the lines of one query."""
        assert self._lines is not None, "begin comes first"
        read = _NOT_IN_READ.sub("_", headers.identifier(result.query_id))[:_READ_NAME_LENGTH]
        flag = 0
        for portion in aligned_portions(result):
            lines = []
            query = portion.query.upper().replace("*", "X")
            references = portion.of_lines(self._references_of(portion))
            for aligned, reference, tags in zip(
                sam_lines.aligned_of(portion, on_part=True), references, score_tags(portion), strict=True
            ):
                letters = "*" if flag else query
                if aligned.has_pairs:
                    line = sam_lines.mapped_line(aligned, read, reference, flag, letters, *tags)
                else:
                    line = sam_lines.unmapped_line(read, flag, letters, f"AS:i:{aligned.score}")
                lines.append(line)
                flag = sam_lines.SECONDARY
            self._lines.write("".join(lines))

    def end(self) -> None:
        """Write the header, and what was kept."""
        assert self._lines is not None, "begin comes first"
        self._stream.write("@HD\tVN:1.6\tSO:unsorted\tGO:query\n")
        self._stream.writelines(self._references)
        # in a field of @PG rather than in @CO, whose free text Biopython does not read
        self._stream.write(f"@PG\tID:swsearch\tPN:swsearch\t{self._how}\n")
        self._lines.seek(0)
        shutil.copyfileobj(self._lines, self._stream)

    def discard(self) -> None:
        """Remove what was kept."""
        if self._lines is not None:
            self._lines.close()

    def _references_of(self, portion: AlignedPortion) -> list[str]:
        """Return the names of a portion's subjects, and take note of those that are new."""
        names = []
        subjects = portion.subjects.tolist()
        for row, subject in enumerate(subjects):
            name = self._names.get(subject)
            if name is None:
                name = self._names[subject] = self._new_name(portion.names[row], subject)
                length = int(portion.subject_lengths[row])
                if length:  # a reference without residues has no place in SAM, and nothing aligns to it
                    header = f"{portion.identifiers[row]} {portion.descriptions[row]}"
                    title = headers.one_line(header).strip() or headers.MISSING
                    self._references.append(f"@SQ\tSN:{name}\tLN:{length}\tDS:{title}\n")
            names.append(name)
        return names

    def _new_name(self, identifier: str, subject: int) -> str:
        """Return a name that no other subject has."""
        name = _NOT_IN_REFERENCE.sub("_", identifier)
        if name[0] in "*=":
            name = "_" + name[1:]
        if name in self._taken:
            name = f"{name}#{subject}"
        while name in self._taken:
            name += "#"
        self._taken.add(name)
        return name


def score_tags(portion: AlignedPortion) -> list[list[str]]:
    """Return the tags EV, PI and BS of each line; without statistics EV or BS are left out."""
    found, known = portion.alignments, portion.numbers
    identities = numbers.percentages(found.identities, found.length, 2)
    columns = zip(known.evalues.tolist(), identities, known.bit_scores.tolist(), strict=True)
    return [
        [*_float_tag("EV", evalue), f"PI:f:{identity}", *_float_tag("BS", bits)] for evalue, identity, bits in columns
    ]


def _float_tag(name: str, value: float) -> list[str]:
    return [f"{name}:f:{value:g}"] if math.isfinite(value) else []
