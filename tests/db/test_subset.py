"""Some of the subjects of a database, interleaved again: the same residues, lengths and places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.samples import random_cases
from swsearch.blocks import LANES, block_columns
from swsearch.db import Database, append_database, build_database, subset
from swsearch.masking import MASKED


def check(database: Database, taken: np.ndarray, max_bytes: int, mask: str = "none") -> None:
    """Compare a subset with what the database says of each of its subjects."""
    part = database.subset(taken)
    seen: list[int] = []
    for chunk in part.chunks(max_bytes, mixed=True, mask=mask):
        lengths, columns = chunk.lengths, np.diff(chunk.column_offsets)
        assert (np.diff(lengths) <= 0).all() and (columns == block_columns(lengths)).all()
        assert chunk.residues.nbytes <= max_bytes or chunk.n_blocks == 1
        whole = np.ones_like(chunk.residues, dtype=bool)
        for place, ordinal in enumerate(chunk.subjects.tolist()):
            codes = database.codes(ordinal).copy()
            for start, end in database.masked(ordinal, mask):
                codes[start:end] = MASKED
            assert chunk.subject(place).tolist() == codes.tolist()
            begin = chunk.column_offsets[place // LANES]
            whole[begin : begin + len(codes), place % LANES] = False
        assert (chunk.residues[whole] == 31).all()
        seen += chunk.subjects.tolist()
    assert sorted(seen) == np.flatnonzero(taken).tolist()
    assert part.n_residues == database.lengths[taken].sum()
    assert part.residue_bytes >= sum(each.residues.nbytes for each in part.chunks(1 << 30))
    assert part.length_runs.array().tolist() == sorted(database.lengths[taken].tolist(), reverse=True)


@random_cases(40)
@given(
    st.lists(st.text("ARNDCQEGhilkm", max_size=90), min_size=1, max_size=300),
    st.integers(0, 2**32 - 1),
    st.floats(0.001, 1),
    st.sampled_from([1, 5_000, 1 << 20]),
    st.sampled_from([64, 10_000, 1 << 24]),
)
def test_a_subset_of_anything(sequences: list[str], seed: int, share: float, max_bytes: int, read: int) -> None:
    sequences[0] += "MKV"
    taken = np.random.default_rng(seed).random(len(sequences)) < share
    with Database.from_records(sequences) as database, pytest.MonkeyPatch.context() as patch:
        patch.setattr(subset, "READ_BYTES_AT_ONCE", read)
        patch.setattr(subset, "NEAR_BYTES", read // 4)
        check(database, taken, max_bytes, "lower")


@pytest.mark.exhaustive
def test_a_subset_of_several_segments_and_files(tmp_path: Path) -> None:
    path = tmp_path / "in.fasta"
    path.write_text("".join(f">r{n}\n{'MKVLAAGIVG' * (n % 37)}\n" for n in range(1, 400)))
    build_database(path, tmp_path / "a.h5")
    append_database(tmp_path / "a.h5", path, on_duplicate="keep")
    build_database(path, tmp_path / "b.json", volume_size=40_000)
    with Database.open([tmp_path / "a.h5", tmp_path / "b.json"]) as database:
        taken = np.zeros(database.n_subjects, dtype=bool)
        taken[[5, 6, 399, 500, 1100]] = True
        check(database, taken, 1 << 20)
        taken[::3] = True
        check(database, taken, 1 << 16)
        check(database, np.zeros(database.n_subjects, dtype=bool), 1)
