"""DNA that is searched as protein: genetic codes, reading frames, and where their residues lie on the DNA."""

from swsearch.options.words import Strand
from swsearch.translation.codes import QueryTranslation, asked_translation
from swsearch.translation.frame import CODON, FRAME_NUMBERS, Frame, Frames

__all__ = ["CODON", "FRAME_NUMBERS", "Frame", "Frames", "QueryTranslation", "Strand", "asked_translation"]
