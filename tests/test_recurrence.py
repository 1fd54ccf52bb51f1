"""Which recurrence is computed: checked when it is made, and what follows from it."""

import itertools

import numpy as np
import pytest

from swsearch import reference
from swsearch.alphabet import PROTEIN
from swsearch.errors import OptionError
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import Ends, Scoring


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
