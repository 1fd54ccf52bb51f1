"""PAF of a search, minimap2's table: 12 columns, then tags."""

from __future__ import annotations

from typing import ClassVar

from swsearch.report import headers, sam_lines
from swsearch.report.base import Writer
from swsearch.report.portions import aligned_portions
from swsearch.report.sam import score_tags
from swsearch.results import SearchResult
from swsearch.run_info import Program, RunInfo


class PafWriter(Writer):
    """One line per alignment: coordinates are 0-based half-open, the block length counts gaps.

    Tags are tp (P for a query's best alignment, S for the others, as minimap2 has it), those of `swsearch.report.sam`
    (AS, NM, EV, PI, BS) and cg (CIGAR). A query that found nothing has no line, as with minimap2.

    Where the query or the subjects are DNA, coordinates are in nucleotides of the given strand, the strand is the one
    that was read, and columns 10 and 11 count nucleotides, cg and the tags codons, all as miniprot has it.
    """

    programs: ClassVar[tuple[Program, ...]] = ("blastp", "blastx", "tblastn")
    unsupported_remedy: ClassVar[str] = "use a table with the column frames"

    def begin(self, run: RunInfo) -> None:
        """Write nothing: PAF has no heading."""

    def write(self, result: SearchResult) -> None:
        """Write the lines of one query."""
        query = headers.identifier(result.query_id)
        rank = "tp:A:P"
        for portion in aligned_portions(result):
            lines = []
            names = portion.of_lines(portion.names)
            for aligned, subject, tags in zip(sam_lines.aligned_of(portion), names, score_tags(portion), strict=True):
                lines.append(sam_lines.paf_line(aligned, query, subject, rank, *tags))
                rank = "tp:A:S"
            self._stream.write("".join(lines))

    def end(self) -> None:
        """Write nothing."""
