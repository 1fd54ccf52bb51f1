"""A sound database is sound to an append, however small the pieces that it looks at; test_content has the others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.db_helpers import LETTERS
from support.samples import sample
from swsearch.blocks import LANES
from swsearch.db import Database, append_database, build_database, verify_database


@pytest.mark.parametrize("seed", sample(range(30), lambda seed: seed < 3))
def test_sound(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some records have more masked runs than are looked at together, some have none, some no residues."""
    pick = random.Random(seed)
    with (tmp_path / "in.fasta").open("w") as file:
        for number in range(pick.randint(1, 400)):
            letters = "".join(pick.choices(LETTERS[:20], k=pick.choice([0, 1, 30, 30, 300])))
            if pick.random() < 0.3:
                letters = "".join(pick.choice([each, each.lower()]) for each in letters)
            file.write(f"> {number}\n{letters}\n" if pick.random() < 0.1 else f">{number}\n{letters}\n")
        file.write(">last\nM\n")
    build_database(tmp_path / "in.fasta", tmp_path / "out.h5", mask=pick.choice(["none", "lower"]))
    monkeypatch.setattr("swsearch.db.streamed.NUMBERS_AT_ONCE", LANES)
    monkeypatch.setattr("swsearch.db.streamed.PLACES_AT_ONCE", LANES * pick.randint(1, 3))
    monkeypatch.setattr("swsearch.db.streamed.BYTES_AT_ONCE", 500)
    append_database(tmp_path / "out.h5", tmp_path / "in.fasta", on_duplicate="keep")
    append_database(tmp_path / "out.h5", tmp_path / "in.fasta", on_duplicate="keep")
    verify_database(tmp_path / "out.h5")
    with Database.open(tmp_path / "out.h5") as database:
        n = database.n_subjects // 3
        for place in pick.sample(range(n), min(n, 20)):
            assert len({(database.header(place + k * n), database.sequence(place + k * n)) for k in range(3)}) == 1
