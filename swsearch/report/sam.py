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
from typing import IO, Any

from swsearch.report import headers, numbers, sam_lines
from swsearch.report.base import Writer
from swsearch.results import Hit, Hsp, SearchResult
from swsearch.run_info import RunInfo

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
        for hit in result.hits:
            reference = self._reference(hit)
            for hsp in hit.hsps:
                pair = hsp.pair
                letters = "*" if flag else pair.shown[0].tobytes().decode("ascii").upper().replace("*", "X")
                if sam_lines.has_pairs(pair):
                    self._lines.write(sam_lines.mapped_line(pair, read, reference, flag, letters, *score_tags(hsp)))
                else:
                    self._lines.write(sam_lines.unmapped_line(read, flag, letters, f"AS:i:{hsp.score}"))
                flag = sam_lines.SECONDARY

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

    def _reference(self, hit: Hit) -> str:
        name = self._names.get(hit.subject_index)
        if name is None:
            name = _NOT_IN_REFERENCE.sub("_", headers.identifier(hit.subject_id))
            if name[0] in "*=":
                name = "_" + name[1:]
            if name in self._taken:
                name = f"{name}#{hit.subject_index}"
            while name in self._taken:
                name += "#"
            self._names[hit.subject_index] = name
            self._taken.add(name)
            if hit.subject_length:  # a reference without residues has no place in SAM, and nothing aligns to it
                title = headers.one_line(f"{hit.subject_id} {hit.subject_description}").strip()
                self._references.append(f"@SQ\tSN:{name}\tLN:{hit.subject_length}\tDS:{title or headers.MISSING}\n")
        return name


def score_tags(hsp: Hsp) -> list[str]:
    """Return the tags EV, PI and BS; without statistics EV or BS are left out."""
    identity = numbers.percentage(hsp.pair.identities, hsp.pair.length, 2)
    return [*_float_tag("EV", hsp.evalue), f"PI:f:{identity}", *_float_tag("BS", hsp.bit_score)]


def _float_tag(name: str, value: float | None) -> list[str]:
    return [] if value is None or not math.isfinite(value) else [f"{name}:f:{value:g}"]
