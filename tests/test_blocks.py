import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, make_chunk
from swsearch.alphabet import PAD
from swsearch.blocks import COLUMN_MULTIPLE, deinterleave


@given(st.lists(any_codes(20), min_size=1, max_size=150))
def test_interleaving_is_undone_by_deinterleaving(sequences):
    chunk = make_chunk(sequences)
    assert chunk.n_subjects == len(sequences)
    assert chunk.n_residues == sum(map(len, sequences))
    assert sorted(chunk.subjects.tolist()) == list(range(len(sequences)))
    for block in range(chunk.n_blocks):
        rows = deinterleave(chunk.block(block))
        assert rows.shape[1] % COLUMN_MULTIPLE == 0
        lanes = chunk.lanes(block)
        for lane, place in enumerate(range(lanes.start, lanes.stop)):
            length = chunk.lengths[place]
            assert np.array_equal(rows[lane, :length], sequences[chunk.subjects[place]])
            assert np.array_equal(chunk.subject(place), sequences[chunk.subjects[place]])
            assert (rows[lane, length:] == PAD).all()
        assert (rows[lanes.stop - lanes.start :] == PAD).all()
