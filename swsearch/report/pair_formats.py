"""The formats of `swsearch align`, by the names that ``--outfmt`` takes."""

from __future__ import annotations

from swsearch.errors import OptionError
from swsearch.report import format_for_path
from swsearch.report.base import did_you_mean
from swsearch.report.pair_sam import PairPafWriter, PairSamWriter
from swsearch.report.pair_writers import BlockWriter, CigarWriter, JsonWriter, PairRun, PairWriter

PAIR_FORMATS: dict[str, type[PairWriter]] = {
    "pairwise": BlockWriter,
    "cigar": CigarWriter,
    "sam": PairSamWriter,
    "paf": PairPafWriter,
    "jsonl": JsonWriter,
    "score": PairWriter,
}
"""Every format of pairs and its writer."""


def check_format(name: str) -> None:
    """Raise `OptionError` if there is no such format."""
    if name not in PAIR_FORMATS:
        raise OptionError(
            "outfmt", name, f"one of {', '.join(PAIR_FORMATS)}", did_you_mean(name.lower(), PAIR_FORMATS, 1)
        )


def format_of_file(path: str | None) -> str:
    """Return the format that a file's name means: that of its extension, else blocks.

    Raises
    ------
    OptionError
        If the extension means a format that pairs do not have.
    """
    found = format_for_path(path or "")
    if found is not None and found.key == "15":
        remedy = "pairs are written as JSON lines"
        raise OptionError("output", path, "another extension, such as .jsonl", remedy)
    return found.key if found is not None and found.key in PAIR_FORMATS else "pairwise"


def create_pair_writer(name: str, run: PairRun) -> PairWriter:
    """Make the writer of a format.

    Raises
    ------
    OptionError
        If there is no such format.
    """
    check_format(name)
    return PAIR_FORMATS[name](run)
