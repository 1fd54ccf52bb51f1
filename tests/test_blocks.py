import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, make_chunk
from swsearch.alphabet import PAD
from swsearch.blocks import COLUMN_MULTIPLE, RunLengths, block_columns


@given(st.lists(any_codes(20), min_size=1, max_size=150))
def test_interleaving_is_undone_by_deinterleaving(sequences):
    chunk = make_chunk(sequences)
    assert chunk.n_subjects == len(sequences)
    assert chunk.n_residues == sum(map(len, sequences))
    assert sorted(chunk.subjects.tolist()) == list(range(len(sequences)))
    for block in range(chunk.n_blocks):
        rows = chunk.block(block).T
        assert rows.shape[1] % COLUMN_MULTIPLE == 0
        lanes = chunk.lanes(block)
        for lane, place in enumerate(range(lanes.start, lanes.stop)):
            length = chunk.lengths[place]
            assert np.array_equal(rows[lane, :length], sequences[chunk.subjects[place]])
            assert np.array_equal(chunk.subject(place), sequences[chunk.subjects[place]])
            assert (rows[lane, length:] == PAD).all()
        assert (rows[lanes.stop - lanes.start :] == PAD).all()


LENGTHS = st.lists(st.integers(0, 12), max_size=150)


@given(LENGTHS, st.data())
def test_runs_of_lengths(lengths, data):
    """In any order, as an array does it."""
    array = np.array(lengths, dtype=np.int32)
    runs = RunLengths.from_lengths(array)
    assert RunLengths.from_lengths(runs) is runs
    check(runs, array)
    assert runs.is_descending == (lengths == sorted(lengths, reverse=True))
    start = data.draw(st.integers(0, len(array)))
    stop = data.draw(st.integers(start, len(array)))
    check(runs.part(start, stop), array[start:stop])
    check(RunLengths.concatenate([runs.part(0, start), runs.part(start, stop), runs.part(stop, len(array))]), array)
    places = np.array(
        data.draw(st.lists(st.integers(0, len(array) - 1), max_size=9)) if lengths else [], dtype=np.int64
    )
    assert runs.at(places).tolist() == array[places].tolist()


@given(st.lists(LENGTHS, max_size=4))
def test_lengths_counted(parts):
    """Whatever their order, as sorting does it."""
    arrays = [np.array(part, dtype=np.int64) for part in parts]
    everything = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *arrays]))[::-1]
    counted = RunLengths.from_unsorted(arrays)
    check(counted, everything)
    assert counted.is_descending
    check(RunLengths.from_unsorted([RunLengths.from_lengths(array) for array in arrays]), everything)
    assert counted.block_columns().tolist() == block_columns(everything).tolist()


def check(runs, array):
    """Compare runs with the array that they stand for."""
    assert len(runs) == len(array) and runs.array().tolist() == array.tolist() and runs.array().dtype == np.int32
    assert (runs.n_residues, runs.n_nonempty) == (array.sum(), np.count_nonzero(array))
    assert runs.longest == array.max(initial=0)
    assert runs.shortest_nonempty == min((length for length in array.tolist() if length), default=0)
    assert (np.diff(runs.ends, prepend=0) > 0).all() and (runs.values[1:] != runs.values[:-1]).all()
    assert runs.counts.tolist() == np.diff(runs.ends, prepend=0).tolist()
