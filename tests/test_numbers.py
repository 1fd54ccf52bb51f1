import numpy as np
import pytest

import swsearch
from swsearch.engines.factory import create_pair_aligner
from swsearch.errors import OptionError
from swsearch.options.kinds import Integer, Percentage, Real
from swsearch.pipeline.options import KEYWORD_ROWS

HOSTILE = [True, "5", float("inf"), float("nan"), 10**23, 1e26, -(10**23), [1]]

NUMBERS = [name for name, row in KEYWORD_ROWS.items() if isinstance(row.kind, (Integer, Real, Percentage))]
NUMBERS += ["threads", "device", "gpu_memory"]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_of_a_search_is_checked(name):
    for value in HOSTILE:
        if name.endswith("evalue") and value in (10**23, 1e26):
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
