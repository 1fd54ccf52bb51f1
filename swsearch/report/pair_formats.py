"""The formats of `swsearch align`, by the names that ``--outfmt`` takes."""

from __future__ import annotations

from swsearch.errors import OptionError
from swsearch.report.pair_sam import PairPafWriter, PairSamWriter
from swsearch.report.pair_writers import BlockWriter, CigarWriter, JsonWriter, PairRun, PairWriter

PAIR_FORMATS: dict[str, type[PairWriter]] = {
    "pairwise": BlockWriter,
    "cigar": CigarWriter,
    "sam": PairSamWriter,
    "paf": PairPafWriter,
    "json": JsonWriter,
    "score": PairWriter,
}
"""Every format of pairs and its writer."""


def check_format(name: str) -> None:
    """Raise `OptionError` if there is no such format."""
    if name not in PAIR_FORMATS:
        raise OptionError("outfmt", name, f"one of {', '.join(PAIR_FORMATS)}")


def create_pair_writer(name: str, run: PairRun) -> PairWriter:
    """Make the writer of a format.

    Raises
    ------
    OptionError
        If there is no such format.
    """
    check_format(name)
    return PAIR_FORMATS[name](run)
