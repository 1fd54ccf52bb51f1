"""A hit, and one alignment (HSP) of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swsearch.alignment import PairAlignment
from swsearch.db.taxonomy import Taxa
from swsearch.lazy import Lazy

if TYPE_CHECKING:
    from Bio.Align import Alignment
    from matplotlib.axes import Axes

    from swsearch.translation import Frame


@dataclass(frozen=True)
class Hsp:
    """One alignment of a hit, as BLAST's high-scoring segment pairs.

    Parameters
    ----------
    pair : PairAlignment
        The alignment.
    score : int
        Its score, matrix units.
    bit_score, evalue, z_score, evalue_published : float or None
        As of a `Hit`, for this score.
    query_frame, subject_frame : Frame or None
        The frames of DNA that the pair's sequences are; None where they are protein.
    """

    pair: PairAlignment
    score: int
    bit_score: float | None
    evalue: float | None
    z_score: float | None = None
    evalue_published: float | None = None
    query_frame: Frame | None = None
    subject_frame: Frame | None = None

    @property
    def query_range(self) -> tuple[int, int]:
        """Aligned part of the query, 0-based half-open, in nucleotides of the given strand where it is DNA."""
        return _span(self.query_frame, self.pair.query_start, self.pair.query_end)

    @property
    def subject_range(self) -> tuple[int, int]:
        """Aligned part of the subject, likewise."""
        return _span(self.subject_frame, self.pair.subject_start, self.pair.subject_end)


def _span(frame: Frame | None, begin: int, end: int) -> tuple[int, int]:
    return (begin, end) if frame is None else frame.dna_span(begin, end)


@dataclass(frozen=True)
class Hit:
    """A subject that a query found.

    Parameters
    ----------
    query_id, subject_id : str
        Identifiers.
    subject_description : str
        The header after the identifier.
    subject_index : int
        The subject's place in the database's input, counted from 0; of a piece of DNA that of its record.
    query_length, subject_length : int
        Residues, or nucleotides of the whole record where it is DNA that was translated.
    score : int
        Exact, matrix units.
    bit_score, evalue : float or None
        None where there are no statistics; in global and semi-global mode there are no bit scores.
    z_score : float or None
        Standard deviations above the mean of what chance gives with this subject, where statistics were fitted.
    evalue_published : float or None
        E-value by published statistics, where `evalue` is by fitted ones and both exist.
    query_frame, subject_frame : Frame or None
        The frames of DNA that the sequences of `pair` are; None where they are protein.
    taxa : tuple of Taxon or None
        The subject's taxa, `swsearch.db.taxonomy.Taxon`; None where the database was built without them.

    Examples
    --------
    >>> hit = next(swsearch.search("MKVLAAGIVGW", ["AAMKVLAGIVGWAA"])).hits[0]
    >>> hit.score, hit.cigar, hit.subject_range
    (41, '4M1I6M', (2, 12))
    """

    query_id: str
    subject_id: str
    subject_description: str
    subject_index: int
    query_length: int
    subject_length: int
    score: int
    bit_score: float | None
    evalue: float | None
    _alignment: Lazy[PairAlignment] | None = field(default=None, repr=False, compare=False)
    z_score: float | None = None
    evalue_published: float | None = None
    _find_hsps: Lazy[list[Hsp]] | None = field(default=None, repr=False, compare=False)
    query_frame: Frame | None = None
    subject_frame: Frame | None = None
    taxa: Taxa | None = None

    @property
    def pair(self) -> PairAlignment:
        """The alignment, computed on first access and cached."""
        if self._alignment is None:
            raise AttributeError("this hit was made without sequences, so it has no alignment")
        return self._alignment.get()

    @property
    def is_aligned(self) -> bool:
        """Whether `pair` is computed already."""
        if self._alignment is None:
            return False
        return self._alignment.is_computed or bool(getattr(self._alignment.source, "is_computed", False))

    @property
    def sequences(self) -> Callable[[], PairAlignment] | None:
        """Function that computes `pair`; None if it is known, or has no sequences."""
        return None if self._alignment is None else self._alignment.source

    @property
    def hsps(self) -> list[Hsp]:
        """The alignments that are reported, the best first, which is the hit's own; found when first asked for."""
        best = Hsp(
            self.pair, self.score, self.bit_score, self.evalue, self.z_score, self.evalue_published,
            self.query_frame, self.subject_frame,
        )  # fmt: skip
        return [best] if self._find_hsps is None else [best, *self._find_hsps.get()]

    @property
    def may_have_more_hsps(self) -> bool:
        """Whether `hsps` may hold more than the hit's own alignment."""
        return self._find_hsps is not None

    @property
    def alignment(self) -> Alignment:
        """The alignment as a Bio.Align.Alignment, whose target is the subject; coordinates count from 0."""
        return self.pair.to_biopython(self.query_id, self.subject_id)

    @property
    def identities(self) -> int:
        """Columns with the same letter on both sides."""
        return self.pair.identities

    @property
    def positives(self) -> int:
        """Columns that are identical or score above 0."""
        return self.pair.positives

    @property
    def gaps(self) -> int:
        """Residues that stand opposite a gap."""
        return self.pair.gaps

    @property
    def cigar(self) -> str:
        """CIGAR; I consumes the query, D the subject."""
        return self.pair.cigar_string

    @property
    def query_range(self) -> tuple[int, int]:
        """Aligned part of the query, 0-based half-open, in nucleotides of the given strand where it is DNA."""
        return _span(self.query_frame, self.pair.query_start, self.pair.query_end)

    @property
    def subject_range(self) -> tuple[int, int]:
        """Aligned part of the subject, likewise."""
        return _span(self.subject_frame, self.pair.subject_start, self.pair.subject_end)

    def plot_dots(self, ax: Axes | None = None, *, window: int = 11, threshold: int | None = None) -> Axes:
        """Draw a dot plot of both sequences with the alignments; see `swsearch.plots.plot_dots`."""
        from swsearch.plots import plot_dots

        return plot_dots(self, ax, window=window, threshold=threshold)
