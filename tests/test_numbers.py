from fractions import Fraction

import numpy as np
import pytest

import swsearch
from swsearch.engines.choice import create_pair_aligner
from swsearch.errors import OptionError, real_number, whole_number

NOT_WHOLE = [
    True,
    np.True_,
    "5",
    b"5",
    1.5,
    float("inf"),
    float("nan"),
    np.float64("inf"),
    None,
    [5],
    np.array([5]),
    1j,
]


@pytest.mark.parametrize("value", [5, 5.0, np.int8(5), np.uint64(5), np.float32(5), Fraction(5)])
def test_whole_numbers(value):
    found = whole_number("max_hits", value, 1, 10)
    assert (found, type(found)) == (5, int)


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
def test_what_is_no_whole_number(value):
    with pytest.raises(OptionError, match=r"^max_hits: got .*, expected an integer from 1 to 1,000$"):
        whole_number("max_hits", value, 1, 1000)


def test_a_range_is_told_where_it_is_left():
    for value, told in ((0, "an integer >= 1"), (10**26, "an integer from 1 to 1,000")):
        with pytest.raises(OptionError, match=f"^max_hits: got {value}, expected {told}$"):
            whole_number("max_hits", value, 1, 1000)


@pytest.mark.parametrize("value", [5, 0.5, np.float32(0.5), np.int64(3), Fraction(1, 2)])
def test_numbers(value):
    found = real_number("evalue", value)
    assert (found, type(found)) == (value, float)


@pytest.mark.parametrize("value", [each for each in NOT_WHOLE if each != 1.5] + [10**400], ids=lambda v: repr(v)[:9])
def test_what_is_no_number(value):
    with pytest.raises(OptionError, match=r"^evalue: got .*, expected a number$"):
        real_number("evalue", value)


def test_a_long_value_is_cut():
    message = str(OptionError("evalue", "1" * 5000, "a number"))
    assert len(message) < 200
    assert message.endswith("1'..., expected a number")


HOSTILE = [True, "5", float("inf"), float("nan"), 10**23, 1e26, -(10**23), [1]]

SEARCH = ["max_hits", "max_alignments", "dbsize", "evalue", "min_score", "min_identity", "min_query_coverage"]
SEARCH += ["min_subject_coverage", "threads", "device", "gpu_memory"]


@pytest.mark.parametrize("name", SEARCH)
def test_every_number_of_a_search_is_checked(name):
    for value in HOSTILE:
        if name == "evalue" and value in (10**23, 1e26):
            continue  # many hits may be wanted
        with pytest.raises(OptionError, match=f"^{name}: got .*, expected "):
            swsearch.search("MKVLA", ["MKVLA"], engine="cpu", **{name: value})


@pytest.mark.parametrize("name", ["threads", "memory", "device", "gpu_memory"])
def test_every_number_of_a_pair_aligner_is_checked(name):
    for value in HOSTILE:
        with pytest.raises(OptionError, match=f"^{name}: got .*, expected "):
            create_pair_aligner("cpu", **{name: value})


def test_numbers_of_numpy_and_whole_floats_are_as_good_as_integers():
    def hits(number):
        options = {"max_hits": number(1), "dbsize": number(1000), "min_score": number(3), "threads": number(1)}
        found = list(swsearch.search("MKVLA", ["MKVLA", "MKVLV"], engine="cpu", max_alignments=number(1), **options))
        return [(hit.subject_id, hit.score, hit.evalue) for result in found for hit in result.hits]

    expected = hits(int)
    assert len(expected) == 1
    for number in (np.int32, np.uint64, float, np.float64):
        assert hits(number) == expected


def test_a_share_in_place_of_a_percentage_is_asked_for():
    with pytest.warns(UserWarning, match=r"^min_identity 0.5 means 0.5%; if you mean 50%, give 50$"):
        swsearch.search("MKVLA", ["MKVLA"], engine="cpu", min_identity=0.5)
    with pytest.warns(UserWarning, match="min_subject_coverage 1 means 1%; if you mean 100%, give 100"):
        swsearch.search("MKVLA", ["MKVLA"], engine="cpu", min_subject_coverage=1)
    swsearch.search("MKVLA", ["MKVLA"], engine="cpu", min_identity=1.5, min_query_coverage=0)  # warns of nothing
