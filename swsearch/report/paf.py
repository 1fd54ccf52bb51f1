"""PAF of a search, minimap2's table: 12 columns, then tags."""

from __future__ import annotations

from swsearch.report import headers, sam_lines
from swsearch.report.base import Writer
from swsearch.report.sam import score_tags
from swsearch.results import SearchResult
from swsearch.run_info import RunInfo


class PafWriter(Writer):
    """One line per alignment: coordinates are 0-based half-open, the block length counts gaps.

    Tags are tp (P for a query's best alignment, S for the others, as minimap2 has it), those of `swsearch.report.sam`
    (AS, NM, EV, PI, BS) and cg (CIGAR). A query that found nothing has no line, as with minimap2.
    """

    def begin(self, run: RunInfo) -> None:
        """Write nothing: PAF has no heading."""

    def write(self, result: SearchResult) -> None:
        """Write the lines of one query."""
        query = headers.identifier(result.query_id)
        rank = "tp:A:P"
        for hit in result.hits:
            subject = headers.identifier(hit.subject_id)
            for hsp in hit.hsps:
                self._stream.write(sam_lines.paf_line(hsp.pair, query, subject, rank, *score_tags(hsp)))
                rank = "tp:A:S"

    def end(self) -> None:
        """Write nothing."""
