"""Which recurrence is computed: checked when it is made, and what follows from it."""

import dataclasses
import itertools
import pickle

import numpy as np
import pytest

from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import Ends, Scoring, dna_matrix


@pytest.mark.parametrize("mode", MODES)
def test_without_a_choice_the_ends_in_force_are_those_of_the_mode(mode):
    recurrence = Recurrence(Scoring(), mode)
    assert recurrence.ends == Ends.from_mode(mode)
    assert recurrence.has_default_ends
    assert recurrence.is_local == (mode == "local")
    assert recurrence == Recurrence(Scoring(), mode, Ends.from_mode(mode))


def test_local_is_the_default_mode():
    assert Recurrence(Scoring()).mode == "local"


def test_ends_can_be_chosen_in_semiglobal_mode():
    recurrence = Recurrence(Scoring(), "semiglobal", Ends.parse("query"))
    assert recurrence.ends.names() == ["query-start", "query-end"]
    assert not recurrence.has_default_ends


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("glocal", None), "mode.*glocal.*one of local, global, semiglobal"),
        (("local", Ends.parse("query")), "free_ends.*query-start, query-end.*expected none in local mode"),
        (("global", Ends()), "free_ends.*expected none in global mode"),
    ],
)
def test_what_cannot_be_computed_cannot_be_made(arguments, message):
    with pytest.raises(OptionError, match=message):
        Recurrence(Scoring(), *arguments)


def test_it_is_checked_again_when_a_part_is_replaced():
    recurrence = Recurrence(Scoring(), "semiglobal", Ends.parse("query"))
    assert dataclasses.replace(recurrence, ends=None).ends == Ends()
    with pytest.raises(OptionError, match="expected none in global mode"):
        dataclasses.replace(recurrence, mode="global")
    with pytest.raises(dataclasses.FrozenInstanceError):
        recurrence.mode = "global"


def test_it_can_be_a_key_and_be_pickled():
    recurrence = Recurrence(Scoring(gap_open=0, gap_extend=3), "semiglobal", Ends.parse("subject"))
    assert pickle.loads(pickle.dumps(recurrence)) == recurrence
    assert {recurrence: 1}[Recurrence(Scoring(gap_open=0, gap_extend=3), "semiglobal", Ends.parse("subject"))] == 1


def test_linear_is_what_opens_no_gap():
    assert Recurrence(Scoring(gap_open=0, gap_extend=3)).is_linear
    assert not Recurrence(Scoring()).is_linear


def test_descriptions():
    assert Recurrence(Scoring(), "global").describe() == "global alignment; BLOSUM62, gap open 11, gap extend 1"
    part = Recurrence(Scoring(dna_matrix(), 10, 1), "semiglobal", Ends.parse("subject-end, query-start"))
    assert part.describe_ends() == "semiglobal alignment, free ends: query-start, subject-end"


@pytest.mark.parametrize("mode", MODES)
def test_bounds_are_those_of_the_scoring_in_this_mode(mode):
    recurrence = Recurrence(Scoring(), mode)
    assert recurrence.score_range(30, 400) == Scoring().score_range(mode, 30, 400)
    assert recurrence.lane_bits(30, 400) == Scoring().lane_bits(mode, 30, 400)
    with pytest.raises(InputError, match="more than 32 bits"):
        Recurrence(Scoring(), "global").lane_bits(1 << 31, 1 << 31)


ALL_ENDS = [Ends(*flags) for flags in itertools.product((False, True), repeat=4)]


@pytest.mark.parametrize("length", [0, 1, 7])
def test_the_score_with_an_empty_side_is_the_reference_s(length):
    recurrences = [Recurrence(Scoring(), mode) for mode in MODES]
    recurrences += [Recurrence(Scoring(), "semiglobal", ends) for ends in ALL_ENDS]
    some, none = PROTEIN.encode("MKVLAAG"[:length]), np.zeros(0, dtype=np.uint8)
    for one in recurrences:
        for query, subject in ((some, none), (none, some)):
            expected = reference.score(query, subject, one.scoring, one.mode, one.ends)
            assert one.empty_score(len(query), len(subject)) == expected, (one, len(query), len(subject))
