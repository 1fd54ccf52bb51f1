"""Databases are told from each other by their content, and by nothing else."""

import shutil

import pytest

from swsearch import Database
from swsearch.db import append_database

RECORDS = [("one", "MKVLAAGIVGWW"), ("two some words", "hhkdEFRTYPC"), ("three", "")]


def fasta(records):
    return "".join(f">{header}\n{letters}\n" for header, letters in records)


@pytest.fixture
def built(tmp_path):
    source = tmp_path / "some.fasta"
    source.write_text(fasta(RECORDS))

    def build(name="some.h5", **options):
        with Database.build(source, tmp_path / name, **options) as database:
            return database.identity()

    return build


def test_name_age_and_place_do_not_matter(tmp_path, built):
    identity = built()
    assert len(identity) == 64
    shutil.copy(tmp_path / "some.h5", tmp_path / "other.h5")
    with Database.open(tmp_path / "other.h5") as database:
        assert database.identity() == identity
    assert built("again.h5") == identity


def test_in_memory_it_is_that_of_the_file(tmp_path, built):
    identity = built()
    with Database.from_fasta(tmp_path / "some.fasta") as database:
        assert database.identity() == identity
    lines = tmp_path / "lines.fasta"
    lines.write_text(fasta(RECORDS).replace("MKVLAA", "MKV\nLAA"))
    with Database.from_fasta(lines) as database:
        assert database.identity() == identity


@pytest.mark.parametrize(
    ("number", "record"),
    [(0, ("one", "MKVLAAGIVGWV")), (0, ("One", "MKVLAAGIVGWW")), (1, ("two some word", "hhkdEFRTYPC")),
     (1, ("two some words", "HHKDEFRTYPC")), (2, ("three", "M")), (2, None)],
)  # fmt: skip
def test_every_change_of_the_content_matters(tmp_path, built, number, record):
    records = [*RECORDS[:number], *([record] if record else []), *RECORDS[number + 1 :]]
    with Database.from_records([(header, letters) for header, letters in records]) as database:
        assert database.identity() != built()


def test_the_mask_and_what_is_appended_matter(tmp_path, built):
    identities = {built(), built(mask="lower")}
    append_database(tmp_path / "some.h5", tmp_path / "some.fasta", on_duplicate="keep")
    with Database.open(tmp_path / "some.h5") as database:
        identities.add(database.identity())
    assert len(identities) == 3
