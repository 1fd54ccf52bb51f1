"""Recurrence of an alignment: scoring, mode, free ends and frameshifts.

A `Recurrence` checks that they go together, so that every one that exists can be computed. `swsearch.reference`
defines how cells are filled, and `swsearch.translation.frameshift_reference` how with frameshifts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from swsearch.errors import OptionError, check_integer
from swsearch.matrices.tables import MAX_GAP_COST
from swsearch.options.kinds import Mode
from swsearch.scoring import Ends, QueryProfile, Scoring, check_ends, check_mode


@dataclass(frozen=True, init=False)
class Recurrence:
    """The computation of every engine for a query and a subject.

    Parameters
    ----------
    scoring : Scoring
        Matrix and gap costs.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    ends : Ends, optional
        Which ends are free in semi-global mode; all four by default. As an attribute, the ends in force: never None.
    frame_shift : int, optional
        What a frame shift costs, matrix units; queries are then strands of DNA, and their codes are the amino acids
        of the codons that begin at each nucleotide. None where queries are proteins.

    Raises
    ------
    OptionError
        If there is no such mode, or ends are chosen in a mode that fixes them; if shifts cost nothing or more than
        `MAX_GAP_COST`, or the mode is not local.
    """

    scoring: Scoring
    mode: Mode
    ends: Ends
    frame_shift: int | None

    def __init__(
        self, scoring: Scoring, mode: Mode = "local", ends: Ends | None = None, frame_shift: int | None = None
    ) -> None:
        check_mode(mode)
        object.__setattr__(self, "scoring", scoring)
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "ends", check_ends(mode, ends))
        object.__setattr__(self, "frame_shift", check_frame_shift(frame_shift, mode))

    def with_bounds_for(self, queries: Iterable[QueryProfile]) -> Recurrence:
        """Return the same recurrence with bounds that hold for some queries; see `Scoring.with_bounds_for`."""
        scoring = self.scoring.with_bounds_for(queries)
        return self if scoring is self.scoring else Recurrence(scoring, self.mode, self.ends, self.frame_shift)

    @property
    def is_local(self) -> bool:
        """Whether an alignment may begin and end anywhere, so that no cell is below 0."""
        return self.mode == "local"

    @property
    def is_linear(self) -> bool:
        """Whether a gap costs the same for each residue."""
        return self.scoring.gap_open == 0

    @property
    def has_default_ends(self) -> bool:
        """Whether the free ends are the mode's default."""
        return self.ends == Ends.from_mode(self.mode)

    def score_range(self, query_length: int, subject_length: int) -> tuple[int, int]:
        """Bound every value that the recurrence can hold, in matrix units; see `Scoring.score_range`."""
        return self.scoring.score_range(self.mode, query_length, subject_length)

    def lane_bits(self, query_length: int, subject_length: int) -> int:
        """Return the narrowest lane, in bits, that can never saturate for these lengths; see `Scoring.lane_bits`."""
        return self.scoring.lane_bits(self.mode, query_length, subject_length)

    def empty_score(self, query_length: int, subject_length: int) -> int:
        """Score a pair of which one side is empty.

        Parameters
        ----------
        query_length, subject_length : int
            Residues; one of the two is 0.

        Returns
        -------
        int
            Matrix units: 0 where an end of the side with residues is free, otherwise what one gap costs.
        """
        ends, gap_cost = self.ends, self.scoring.gap_cost
        query = 0 if ends.query_start or ends.query_end else gap_cost(query_length)
        subject = 0 if ends.subject_start or ends.subject_end else gap_cost(subject_length)
        return -(query + subject)

    def describe_ends(self) -> str:
        """Return ``global alignment`` or ``semiglobal alignment, free ends: query-start, query-end``."""
        free = f", free ends: {self.ends.describe()}" if self.mode == "semiglobal" else ""
        return f"{self.mode} alignment{free}"

    def describe(self) -> str:
        """Return ``global alignment; BLOSUM62, gap open 11, gap extend 1``."""
        shift = "" if self.frame_shift is None else f", frame shift {self.frame_shift}"
        return f"{self.describe_ends()}; {self.scoring.describe()}{shift}"


def check_frame_shift(cost: int | None, mode: Mode = "local") -> int | None:
    """Return the cost of a frameshift; None without frameshifts.

    Raises
    ------
    OptionError
        If it is no whole number from 1 to `MAX_GAP_COST`, or the mode is not local.
    """
    if cost is None:
        return None
    if mode != "local":
        raise OptionError("frame_shift", cost, f"none in {mode} mode", "only local alignments may shift the frame")
    return check_integer("frame_shift", cost, 1, MAX_GAP_COST)
