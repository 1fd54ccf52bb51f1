"""A value that is found when it is asked for."""

import pickle

from swsearch.lazy import Later


def test_it_is_found_once():
    calls = []
    later = Later(lambda: calls.append(1) or len(calls))
    assert not later.is_known
    assert [later.get(), later.get()] == [1, 1]
    assert later.is_known
    assert calls == [1]


def test_what_is_handed_in_is_not_looked_for():
    later = Later(lambda: 1 / 0)
    later.give(5)
    later.give(6)
    assert later.get() == 5


def test_nothing_is_a_value_too():
    later = Later.known(None)
    assert later.is_known
    assert later.get() is None


def test_the_value_alone_is_pickled():
    later = Later(lambda: [1, 2])  # a lambda could not be
    copy = pickle.loads(pickle.dumps(later))
    assert copy.is_known
    assert copy.get() == [1, 2]
