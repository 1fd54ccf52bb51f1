"""A search of volumes writes the bytes that a search of one file writes, in every format."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import swsearch
from support.samples import sample
from swsearch import report
from swsearch.db import Database, build_database, write_manifest
from swsearch.errors import InputError

KINDS = [kind for kind in report.OUTPUT_FORMATS if not kind.writer.is_single_query]

CUTS = [0, 1, 90, 130, 180]


def fasta(path: Path, records: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f">{name} of some protein\n{letters}\n" for name, letters in records))
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make the same database under the same name in two folders: one file, and volumes with their manifest."""
    one, several = (tmp_path_factory.mktemp(name) for name in ("one", "several"))
    draw = np.random.default_rng(18)
    letters = ["".join(draw.choice(list("ACDEFGHIKLMNPQRSTVWY"), draw.integers(20, 120))) for _ in range(CUTS[-1])]
    query = "".join(draw.choice(list("ACDEFGHIKLMNPQRSTVWY"), 90))
    for place in range(0, len(letters), 7):  # relatives, some of the same score, and masked parts
        kept = query[place % 30 :][:50]
        letters[place] += kept + letters[place][:9].lower() + kept
    records = [(f"s{place}", each) for place, each in enumerate(letters)]
    build_database(fasta(one / "in.fasta", records), one / "db", mask="lower")
    parts = []
    for first, last in pairwise(CUTS):
        parts.append(several / f"part{first}.h5")
        build_database(fasta(several / "in.fasta", records[first:last]), parts[-1], mask="lower")
    with Database.open(one / "db") as database:
        write_manifest(several / "db", parts, database.sources())
    for folder in (one, several):
        fasta(folder / "queries.fasta", [("q1", query), ("q2", letters[7]), ("q3", "MKV"), ("q4", letters[120])])
    return one, several


SEARCHES = {
    "fitted": {},
    "published": {"statistics": "published"},
    "unmasked": {"subject_mask": "none", "statistics": "published", "max_alignments": 3},
    "filters": {"exclude_ids": ["s7", "s91"], "min_query_coverage": 30, "sort": "score"},
    "semiglobal": {"mode": "semiglobal"},
}


@pytest.mark.parametrize("case", sample(list(SEARCHES), lambda case: case in ("semiglobal", "published")))
def test_the_same_bytes(folders: tuple[Path, Path], case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for folder in folders:
        monkeypatch.chdir(folder)
        paths = [Path(f"{case}-{kind.key}") for kind in KINDS]
        with swsearch.search(Path("queries.fasta"), Path("db"), engine="cpu", threads=1, max_hits=30,
                             **SEARCHES[case]) as results:  # fmt: skip
            swsearch.write(results, paths, [kind.key for kind in KINDS])
        written.append([without_checksum(path.read_bytes()) for path in paths])
    for kind, one, several in zip(KINDS, *written, strict=True):
        assert one == several, kind.key
        assert len(one) > 100


def without_checksum(page: bytes) -> bytes:
    """A page without what it says of the run, and the checksum of the database's own file or of the manifest."""
    page = re.sub(rb'<section id="run".*?</section>', b"", page, flags=re.DOTALL)
    return re.sub(rb"SHA-256, database.*?[0-9a-f]{64}", b"", page)


def test_a_checkpoint_goes_on_with_the_same_volumes(folders: tuple[Path, Path], tmp_path: Path) -> None:
    folder = folders[1]
    options = {"engine": "cpu", "threads": 1, "statistics": "published", "checkpoint": tmp_path / "kept"}
    volumes = [folder / f"part{first}.h5" for first in CUTS[:-1]]
    for given in (folder / "db", folder / "db", volumes):  # the same, however it is named
        with swsearch.search(folder / "queries.fasta", given, **options) as found:
            assert len(list(found)) == 4
    for other in ([*volumes[1:], volumes[0]], folders[0] / "db"):  # where it is cut is part of what it is
        with (
            pytest.raises(InputError, match="database was"),
            swsearch.search(folder / "queries.fasta", other, **options) as found,
        ):
            list(found)
