"""DNA that is searched as protein: reading frames, and where their residues lie on the DNA."""

from swsearch.translation.frame import FRAME_NUMBERS, Frame, Frames

__all__ = ["FRAME_NUMBERS", "Frame", "Frames"]
