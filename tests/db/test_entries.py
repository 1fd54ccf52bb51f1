"""Entries as FASTA again: in any order, parts of them, in windows through a temporary file."""

from __future__ import annotations

import random

import numpy as np
import pytest

from swsearch.db import Database, entries
from swsearch.db.entries import ResidueRange, copy_strips, fasta_of
from swsearch.errors import OptionError


def records(seed: int, n: int) -> list[str]:
    draw = random.Random(seed)
    lengths = [0, 1, 59, 60, 61, 120, 121, *(draw.randrange(300) for _ in range(n))]
    texts = []
    for number, length in enumerate(lengths):
        letters = "".join(draw.choice("ACDEFGHIKLMNPQRSTVWYXBZJUO*acdefg") for _ in range(length))
        lines = "".join(f"{letters[at : at + 60]}\n" for at in range(0, length, 60))
        texts.append(f">s{number} d\u00e9 {'x' * draw.randrange(90)}\n{lines}")
    return texts


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return records(5, 200)


@pytest.fixture(scope="module")
def database(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Database:
    path = tmp_path_factory.mktemp("entries") / "in.fasta"
    path.write_bytes("".join(texts).encode("latin-1"))  # bytes come back as they went in, whatever they mean
    return Database.build(path, path.with_suffix(".h5"))


@pytest.mark.parametrize("way", ["few", "whole", "windows"])
def test_entries_come_back_in_any_order(
    way: str, database: Database, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "FEW_ENTRIES", 1000 if way == "few" else 0)
    monkeypatch.setattr(entries, "WINDOW_RESIDUES", 2000 if way == "windows" else 1 << 20)
    monkeypatch.setattr(entries, "PASS_BYTES", 1 << 14)
    whole = b"".join(fasta_of(database, np.arange(len(texts))))
    assert whole == "".join(texts).encode("latin-1")
    some = list(range(len(texts)))
    random.Random(1).shuffle(some)
    found = b"".join(fasta_of(database, np.array(some[:100])))
    assert found == "".join([texts[place] for place in some[:100]]).encode("latin-1")


def test_a_range_of_each_entry(database: Database, texts: list[str]) -> None:
    for text, start, end in (("10-80", 9, 80), ("60-", 59, None), ("1-1", 0, 1)):
        expected = ""
        for record in texts:
            header, *lines = record.rstrip("\n").split("\n")
            letters = "".join(lines)[start:end]
            word, _, rest = header.partition(" ")
            if letters:
                wrapped = "".join(f"{letters[at : at + 60]}\n" for at in range(0, len(letters), 60))
                expected += f"{word}:{start + 1}-{start + len(letters)} {rest}\n{wrapped}"
        got = b"".join(fasta_of(database, np.arange(len(texts)), ResidueRange.parse(text)))
        assert got == expected.encode("latin-1")


@pytest.mark.parametrize("text", ["", "5", "0-3", "8-7", "-7", "a-b", "1-2-3", " 1-2", "1" * 30 + "-"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(OptionError, match="10-80"):
        ResidueRange.parse(text)


def test_strips_are_copied() -> None:
    draw = np.random.default_rng(4)
    lengths = np.concatenate([np.arange(140), draw.integers(0, 400, 60)])
    draw.shuffle(lengths)
    begins = np.cumsum(lengths) - lengths
    source = draw.integers(0, 256, int(lengths.sum()), dtype=np.uint8)
    order = draw.permutation(len(lengths))
    to = np.empty_like(begins)
    to[order] = np.cumsum(lengths[order]) - lengths[order]
    target = np.zeros_like(source)
    copy_strips(source, begins, target, to, lengths)
    expected = np.concatenate([source[begins[k] : begins[k] + lengths[k]] for k in order])
    assert (target == expected).all()
