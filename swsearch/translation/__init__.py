"""DNA as protein: genetic codes, reading frames and positions on the DNA."""

from swsearch.options.kinds import Strand
from swsearch.translation.genetic_codes import (
    CODON,
    FRAME_NUMBERS,
    Frame,
    Frames,
    QueryTranslation,
    make_translation,
)

__all__ = ["CODON", "FRAME_NUMBERS", "Frame", "Frames", "QueryTranslation", "Strand", "make_translation"]
