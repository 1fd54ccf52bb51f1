"""What a job found, read from the JSON lines that the server writes: hits of queries, with alignments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alphabet import ByteArray
from swsearch.errors import InputError
from swsearch.scoring import Scoring
from swsearch.translation.frame import CODON, Frame

if TYPE_CHECKING:
    from Bio.Align import Alignment
    from matplotlib.axes import Axes


class JobHit:
    """A hit, or one of its alignments: the members of ``jsonl`` are attributes, e.g. ``score`` and ``cigar``.

    The members of ``subject`` are ``subject_id``, ``subject_description``, ``subject_length`` and so on.

    Parameters
    ----------
    stated : dict
        The hit, as the format has it.
    result : JobResult
        The result that it is part of.
    """

    def __init__(self, stated: dict[str, Any], result: JobResult) -> None:
        self.stated = {**{f"subject_{name}": value for name, value in stated["subject"].items()}, **stated}
        self._result = result
        self.query_id, self.query_length = result.query_id, result.query_length

    def __getattr__(self, name: str) -> Any:
        stated = self.__dict__.get("stated", {})  # a copy has none at first
        if name not in stated:
            raise AttributeError(f"this hit has no {name!r}, only {', '.join(stated)}")
        return stated[name]

    def __repr__(self) -> str:
        return f"<JobHit {self.subject_id}: score {self.score}>"

    @property
    def hsps(self) -> list[JobHit]:
        """Its alignments, the best first."""
        others = self.stated.get("further_alignments", ())
        return [self, *(JobHit({"subject": self.subject, **each}, self._result) for each in others)]

    @property
    def query_range(self) -> tuple[int, int]:
        """Aligned part of the query, 0-based half-open, in nucleotides where it is DNA."""
        return self.query_start, self.query_end

    @property
    def subject_range(self) -> tuple[int, int]:
        """Aligned part of the subject, likewise."""
        return self.subject_start, self.subject_end

    @property
    def query_frame(self) -> Frame | None:
        """Frame of the query's aligned part; None for protein."""
        return _frame(self.stated.get("query_frame"), self.query_length, *self.query_range)

    @property
    def subject_frame(self) -> Frame | None:
        """Frame of the subject's aligned part; None for protein."""
        return _frame(self.stated.get("subject_frame"), self.subject_length, self.subject_start, self.subject_end)

    @cached_property
    def pair(self) -> PairAlignment:
        """The alignment. A protein is X outside its aligned part; of DNA it has the aligned part alone.

        Raises
        ------
        InputError
            If the alignment has frameshifts.
        """
        if not re.fullmatch("(?:[0-9]+[MID])*", self.cigar):
            raise InputError(f"{self.subject_id}: got an alignment with frameshifts; take its query_row, subject_row")
        cigar = tuple((int(n), operation) for n, operation in re.findall("([0-9]+)([MID])", self.cigar))
        query, query_letters, query_start = self._side("query", self.query_frame)
        subject, subject_letters, subject_start = self._side("subject", self.subject_frame)
        return PairAlignment(
            query, subject, self._result.scoring, self.score, query_start, subject_start, cigar, query_letters,
            subject_letters,
        )  # fmt: skip

    def _side(self, side: str, frame: Frame | None) -> tuple[ByteArray, ByteArray, int]:
        """Return codes and letters of a sequence, each of shape (n,), and its first aligned residue."""
        row = getattr(self, f"{side}_row").replace("-", "")
        before = getattr(self, f"{side}_start") if frame is None else 0
        length = getattr(self, f"{side}_length") if frame is None else len(row)
        text = f"{'X' * before}{row}".ljust(length, "X")
        codes = self._result.scoring.matrix.alphabet.encode(re.sub("[a-z]", "X", text))  # masked residues
        return codes, np.frombuffer(text.encode("ascii"), dtype=np.uint8), before

    @property
    def alignment(self) -> Alignment:
        """The alignment as a Bio.Align.Alignment, whose target is the subject; see `pair`."""
        return self.pair.to_biopython(self.query_id, self.subject_id)

    def plot_dots(self, ax: Axes | None = None, *, window: int = 11, threshold: int | None = None) -> Axes:
        """Draw a dot plot of the aligned parts; see `swsearch.plots.plot_dots`."""
        from swsearch.plots import plot_dots

        return plot_dots(self, ax, window=window, threshold=threshold)


def _frame(number: int | None, dna_length: int, begin: int, end: int) -> Frame | None:
    """Return the frame, of which codons before the aligned part are left out."""
    if number is None:
        return None
    before = begin if number > 0 else dna_length - end
    return Frame(number, dna_length, (before - (abs(number) - 1)) // CODON)


class JobResult:
    """The hits of a query; ``stated`` is the object that the format ``jsonl`` has of it.

    Parameters
    ----------
    stated : dict
        That object.
    scoring : Scoring
        Scoring of the search.
    """

    distribution = None
    """Scores of the whole database: in the report of ``html``."""

    def __init__(self, stated: dict[str, Any], scoring: Scoring) -> None:
        self.stated, self.scoring = stated, scoring
        query, program = stated["query"], stated["parameters"].get("program", "blastp")
        self.query_id, self.query_description, self.query_length = query["id"], query["description"], query["length"]
        self.has_query_frames = program in ("blastx", "tblastx")
        self.hits = [JobHit(each, self) for each in stated["hits"]]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[JobHit]:
        return iter(self.hits)

    def __repr__(self) -> str:
        return f"<JobResult {self.query_id}: {len(self.hits):,} hits>"

    def plot_coverage(self, ax: Axes | None = None, *, max_hits: int = 100) -> Axes:
        """Draw where the hits lie along the query; see `swsearch.plots.plot_coverage`."""
        from swsearch.plots import plot_coverage

        return plot_coverage(self, ax, max_hits=max_hits)
