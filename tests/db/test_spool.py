"""What a spool knows of its records does not depend on where buffers end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.db_helpers import naive_fasta, runs_of_lower
from support.samples import random_cases
from swsearch.db import spool as spools
from swsearch.db.fasta import FastaReader, RecordBatch
from swsearch.db.records import Handle
from swsearch.db.spool import Spool
from swsearch.errors import SequenceError


class Text:
    """A file of bytes."""

    def __init__(self, text: bytes) -> None:
        self._left = text

    def read(self, size: int = -1) -> bytes:
        part, self._left = self._left[:size], self._left[size:]
        return part


@random_cases(150)
@given(
    inputs=st.lists(
        st.lists(st.text("MaVvK", max_size=30) | st.text("am", max_size=60), min_size=1, max_size=12),
        min_size=1,
        max_size=3,
    ).filter(lambda inputs: any(map("".join, inputs))),
    buffer_bytes=st.integers(16, 80),
)
def test_records(inputs: list[list[str]], buffer_bytes: int) -> None:
    with Spool(None) as spool:
        expected = []
        for number, records in enumerate(inputs):
            text = "".join(f">{number} {k}\n{letters}\n" for k, letters in enumerate(records)).encode()
            spool.add(FastaReader(Handle(Text(text)), buffer_bytes=buffer_bytes))
            expected += naive_fasta(text)
        classes = spool.finish()
        assert spool.finish() is classes
        lengths = [len(letters) for _, letters in expected]
        assert np.concatenate(list(spool.lengths.pieces())).tolist() == lengths
        assert classes.lengths(np.arange(len(lengths))).tolist() == sorted(lengths, reverse=True)
        headers = [len(header) for header, _ in expected]
        assert np.concatenate(list(spool.header_lengths.pieces())).tolist() == headers
        assert (spool.n_subjects, spool.n_residues, spool.n_header_bytes) == (
            len(lengths),
            sum(lengths),
            sum(headers),
        )
        runs = [runs_of_lower(letters) for _, letters in expected]
        assert np.concatenate(list(spool.masks.counts(len(runs)))).tolist() == [len(each) for each in runs]
        flat = [run for each in runs for run in each]
        starts, ends = (np.concatenate([[], *part.pieces()]) for part in (spool.masks.starts, spool.masks.ends))
        assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == flat
        assert spool.masks.n_masked == sum(end - start for start, end in flat)


def batches(*lengths: int) -> Iterator[RecordBatch]:
    none = np.empty(0, dtype=np.int64)
    for length in lengths:
        start, ones = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
        yield RecordBatch(np.zeros(length, dtype=np.uint8), start, b"x", ones, none, none)


def test_a_record_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "LONGEST", 20)
    with Spool(None) as spool:
        spool.sources.append({"path": "in.fasta"})
        spool.add(batches(20, 22, 3, 25, 25, 4))
        with pytest.raises(SequenceError, match=r"in\.fasta: record 4 has 25 residues, expected at most 20"):
            spool.finish()


def test_the_last_record_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "LONGEST", 20)
    with Spool(None) as spool:
        spool.add(batches(20, 21))
        with pytest.raises(SequenceError, match="record 2 has 21 residues, expected at most 20"):
            spool.finish()


def test_no_residues() -> None:
    with Spool(None) as spool:
        spool.add(batches(0, 0))
        with pytest.raises(SequenceError, match="<records>: no residues in 2 records"):
            spool.finish()
