"""Residue letters as small codes, for database files, profiles and kernels.

Codes are below 32, so that a score lookup is one byte permute in a 32-entry row. Letters that score alike (U as C, O
as X) have codes of their own, so that ``db fetch`` returns the original letters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from swsearch.errors import SequenceError

ByteArray = npt.NDArray[np.uint8]

N_CODES = 32
"""Number of codes in a profile row, used or not."""

PAD = 31
"""Code of the padding after a subject's end in an interleaved block; it is no residue."""

BLANK = 254
"""Encoding of layout bytes (space, tab, newline): skipped."""

ILLEGAL = 255
"""Encoding of a byte that is neither a residue letter nor layout."""


@dataclass(frozen=True)
class Alphabet:
    """A set of at most 31 residue letters.

    Parameters
    ----------
    name : str
        ``"protein"``, ``"dna"``, ``"3di"`` or ``"tea"``.
    letters : str
        Upper-case letters; the position of a letter is its code.
    synonyms : str
        Pairs of letters that stand for the same residue, one after the other; the first of each counts as the second.
    """

    name: str
    letters: str
    synonyms: str = ""
    encode_table: ByteArray = field(init=False, repr=False, compare=False)
    """For every byte its code, `BLANK` or `ILLEGAL`; shape (256,), uint8."""
    decode_table: ByteArray = field(init=False, repr=False, compare=False)
    """For every code its upper-case letter, ``?`` where there is none; shape (256,), uint8."""
    identity_table: ByteArray = field(init=False, repr=False, compare=False)
    """For every code that of the residue that it stands for: equal ones are identical; shape (256,), uint8."""

    def __post_init__(self) -> None:
        encode = np.full(256, ILLEGAL, dtype=np.uint8)
        decode = np.full(256, ord("?"), dtype=np.uint8)
        encode[np.frombuffer(b" \t\n\r\v\f", dtype=np.uint8)] = BLANK
        for code, letter in enumerate(self.letters):
            encode[ord(letter)] = encode[ord(letter.lower())] = code
            decode[code] = ord(letter)
        identity = np.arange(256, dtype=np.uint8)
        for letter, meant in zip(self.synonyms[::2], self.synonyms[1::2], strict=True):
            identity[self.letters.index(letter)] = self.letters.index(meant)
        identity.setflags(write=False)
        encode.setflags(write=False)
        decode.setflags(write=False)
        object.__setattr__(self, "encode_table", encode)
        object.__setattr__(self, "decode_table", decode)
        object.__setattr__(self, "identity_table", identity)

    @property
    def is_structural(self) -> bool:
        """Whether letters stand for local structure, not for amino acids."""
        return self.name in STRUCTURAL

    def encode(self, sequence: str | bytes, *, source: str = "sequence", record: str | None = None) -> ByteArray:
        """Encode a sequence; blanks and line ends are skipped, case is ignored.

        Parameters
        ----------
        sequence : str or bytes
            Residue letters.

        Returns
        -------
        ndarray, shape (n_residues,), uint8
            Codes below 32.
        """
        raw = sequence.encode("utf-8") if isinstance(sequence, str) else bytes(sequence)
        data = np.frombuffer(raw, dtype=np.uint8)
        codes: ByteArray = self.encode_table[data]
        if (codes == ILLEGAL).any():
            at = int(np.flatnonzero(codes == ILLEGAL)[0])
            line = raw.count(b"\n", 0, at) + 1 if b"\n" in raw else None
            place = f" (position {at + 1})" if line is None else ""
            raise SequenceError(source, self.describe_illegal_byte(int(data[at])) + place, record, line)
        blank = codes == BLANK
        return codes[~blank] if blank.any() else codes

    def decode(self, codes: ByteArray) -> str:
        """Turn codes, shape (n,), uint8, back into upper-case letters."""
        return self.decode_table[codes].tobytes().decode("ascii")

    def describe_illegal_byte(self, byte: int) -> str:
        """Return the error text for a byte that is not a residue letter, with the remedy."""
        character = f"{chr(byte)!r}" if 32 < byte < 127 else f"byte 0x{byte:02X}"
        expected = f"one of the {self.name} letters {self.letters}"
        if byte in b"-.~":
            return f"{character} is a gap character, expected {expected}; remove the gaps from the sequence"
        if byte in b"0123456789":
            return f"{character} is a digit, expected {expected}; remove position numbers from sequence lines"
        if byte >= 128 or byte < 32:
            return f"{character} is no residue letter, expected {expected}; is this a text file in FASTA format?"
        return f"{character} is no residue letter, expected {expected}"


PROTEIN = Alphabet("protein", "ARNDCQEGHILKMFPSTWYVBJZXUO*")
"""The 20 amino acids, then B, J, Z, X (ambiguous), U and O (rare) and ``*`` (stop): 27 codes."""

DNA = Alphabet("dna", "ACGTURYSWKMBDHVN", synonyms="UT")
"""The bases, U (as T) and the IUPAC ambiguity codes: 16 codes."""

STRUCTURAL = ("3di", "tea")
"""Alphabets of structural letters, which are those of amino acids: Foldseek's 3Di, and The Embedded Alphabet."""

ALPHABETS = {each.name: each for each in (PROTEIN, DNA, *(Alphabet(name, PROTEIN.letters) for name in STRUCTURAL))}
"""Alphabets by name."""
