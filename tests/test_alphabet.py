import numpy as np
import pytest

from swsearch.alphabet import DNA, N_CODES, PAD, PROTEIN
from swsearch.errors import SequenceError


def test_every_letter_has_a_code_below_the_padding():
    for alphabet in (PROTEIN, DNA):
        codes = alphabet.encode(alphabet.letters)
        assert codes.tolist() == list(range(len(alphabet.letters)))
        assert codes.max() < PAD < N_CODES
        assert alphabet.decode(codes) == alphabet.letters
        assert np.array_equal(alphabet.encode(alphabet.letters.lower()), codes)


def test_layout_is_skipped():
    assert PROTEIN.decode(PROTEIN.encode(" MK\tV\r\nLA \n")) == "MKVLA"


@pytest.mark.parametrize(
    ("sequence", "fault", "remedy"),
    [
        ("MK-V", "'-' is a gap character", "remove the gaps"),
        ("MK.V", "'.' is a gap character", "remove the gaps"),
        ("MK1V", "'1' is a digit", "remove position numbers"),
        ("MK\x07V", "byte 0x07", "text file in FASTA format"),
        ("MKéV", "byte 0xC3", "text file"),
        ("MK@V", "'@' is no residue letter", "expected one of the protein letters"),
    ],
)
def test_any_other_byte_is_an_error_that_names_it(sequence, fault, remedy):
    with pytest.raises(SequenceError) as caught:
        PROTEIN.encode(sequence, source="query", record="q1")
    message = str(caught.value)
    assert message.startswith("query: record 'q1'")
    assert fault in message
    assert remedy in message
    assert "(position 3)" in message


def test_an_error_in_several_lines_names_the_line():
    with pytest.raises(SequenceError, match="line 3: '!'"):
        PROTEIN.encode("MKV\nLA\nM!\n", source="s", record="r")
