"""Tables of alignments: slices, gathering, CIGARs as tuples and as text."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsearch.alignment_table import ALIGNMENT_COLUMNS, AlignmentTable

runs = st.lists(st.tuples(st.integers(1, 10**18), st.sampled_from("MID")), max_size=5).map(tuple)


def table_of(cigars):
    """A table whose columns are all different, of CIGARs as tuples."""
    flat = [run for cigar in cigars for run in cigar]
    return AlignmentTable(
        *(np.arange(len(cigars)) + 100 * k for k in range(len(ALIGNMENT_COLUMNS))),
        np.cumsum([0, *map(len, cigars)]),
        np.array([n for n, _ in flat], dtype=np.int64),
        np.frombuffer("".join(op for _, op in flat).encode(), dtype=np.uint8),
    )


def contents(table):
    """All that a table says, as lists."""
    assert table.run_offsets[0] == 0 and table.run_offsets[-1] == len(table.run_lengths) == len(table.run_operations)
    return [
        (*(int(getattr(table, name)[k]) for name in ALIGNMENT_COLUMNS), table.cigar(k), text)
        for k, text in zip(range(len(table)), table.cigar_strings(), strict=True)
    ]


@given(st.lists(runs, max_size=6), st.data())
def test_parts_say_what_the_whole_says(cigars, data):
    table = table_of(cigars)
    whole = contents(table)
    assert [row[-2] for row in whole] == cigars
    assert [row[-1] for row in whole] == ["".join(f"{n}{op}" for n, op in cigar) for cigar in cigars]
    begin, end = data.draw(st.integers(-7, 7)), data.draw(st.integers(-7, 7))
    assert contents(table[begin:end]) == whole[begin:end]
    assert contents(table[begin:]) + contents(table[:end]) == whole[begin:] + whole[:end]
    joined = AlignmentTable.concatenate([table[begin:], table[:end], table])
    assert contents(joined) == whole[begin:] + whole[:end] + whole
    if cigars:
        places = data.draw(st.lists(st.integers(0, len(cigars) - 1), max_size=8))
        assert contents(table.take(np.array(places, dtype=np.int64))) == [whole[place] for place in places]
    order = np.array(data.draw(st.permutations(range(len(cigars)))), dtype=np.int64)
    parts = [(some, table.take(some)) for some in (order[:2], order[2:])]
    assert contents(AlignmentTable.merge(parts)) == whole
