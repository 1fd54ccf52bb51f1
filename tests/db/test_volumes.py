"""A database of several files is what one file of the same subjects is."""

from __future__ import annotations

import codecs
import gc
import json
import os
import resource
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from support.db_helpers import HBA, HBB
from swsearch.blocks import RunLengths
from swsearch.db import (
    Database,
    append_database,
    build_database,
    is_database,
    source,
    verify_database,
    write_manifest,
)
from swsearch.db.manifest import read_manifest
from swsearch.errors import (
    DatabaseDamageError,
    DatabaseError,
    OptionError,
    OutputError,
    SwsearchError,
    SwsearchWarning,
)
from swsearch.inputs import open_subjects

OPEN_FILES = Path("/proc/self/fd")

Entry = tuple[str, str]

RECORDS: list[Entry] = [
    (f"id{i} number {i}", (HBA + HBB)[i % 7 : i % 7 + (37 * i) % 190] + ("mkv" if i % 3 else "")) for i in range(200)
]

CUTS = [0, 70, 71, 160, 200]
"""Where the records are cut into volumes."""


def write_fasta(path: Path, records: list[Entry]) -> Path:
    path.write_text("".join(f">{header}\n{letters}\n" for header, letters in records))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one file, the same in four volumes, and their manifest."""
    folder = tmp_path_factory.mktemp("made")
    fasta = write_fasta(folder / "in.fasta", RECORDS)
    build_database(fasta, folder / "one.h5", mask="lower")
    volumes = []
    for number, (first, last) in enumerate(pairwise(CUTS)):
        volumes.append(folder / f"part.{number}.h5")
        build_database(write_fasta(folder / "part.fasta", RECORDS[first:last]), volumes[-1], mask="lower")
    with Database.open(folder / "one.h5") as one:
        write_manifest(folder / "all.json", volumes, one.sources())
    return folder


def blocks_of(database: Database, **options: Any) -> list[tuple[list[int], bytes]]:
    """Return what is loaded, block by block."""
    found = []
    for chunk in database.chunks(20_000, **options):
        for number, block in enumerate(chunk):
            found.append((chunk.subjects[chunk.lanes(number)].tolist(), block.tobytes()))
    return found


def residues_by_subject(database: Database) -> dict[int, bytes]:
    found = {}
    for chunk in database.chunks(5_000):
        for place, subject in enumerate(chunk.subjects.tolist()):
            assert subject not in found
            found[subject] = chunk.subject(place).tobytes()
    return found


@pytest.mark.parametrize("way", ["manifest", "list"])
def test_it_is_what_one_file_is(made: Path, way: str) -> None:
    paths = [made / f"part.{number}.h5" for number in range(4)]
    with (
        Database.open(made / "one.h5") as one,
        Database.open(made / "all.json" if way == "manifest" else paths) as all_,
    ):
        assert (all_.n_subjects, all_.n_residues, all_.mask) == (one.n_subjects, one.n_residues, "lower")
        assert all_.length_runs.values.tolist() == one.length_runs.values.tolist()
        assert all_.length_runs.ends.tolist() == one.length_runs.ends.tolist()
        assert all_.lengths.tolist() == one.lengths.tolist()
        assert residues_by_subject(all_) == residues_by_subject(one)
        some = np.array([199, 0, 70, 69, 71, 70, 160, 159])
        for name in ("codes_of", "headers_of", "lengths_of"):
            for mine, theirs in zip(getattr(all_, name)(some), getattr(one, name)(some), strict=True):
                assert np.array_equal(mine, theirs)
        for mine, theirs in zip(all_.masked_of(some, "lower"), one.masked_of(some, "lower"), strict=True):
            assert np.array_equal(mine, theirs)
        for index in some.tolist():
            assert (all_.header(index), all_.sequence(index)) == (one.header(index), one.sequence(index))
        assert all_.find_all(["id71", "id0", "none"]) == [[71], [0], []]
        if way == "manifest":
            assert (all_.sources(), all_.name) == (one.sources(), str(made / "all.json"))
        else:
            assert [source["records"] for source in all_.sources()] == [70, 1, 89, 40]
            assert all_.name == ", ".join(map(str, paths))


def test_volumes_say_where_they_begin(made: Path) -> None:
    with Database.open(made / "all.json") as database:
        volumes = database.volumes
        assert [volume.path for volume in volumes] == [str(made / f"part.{number}.h5") for number in range(4)]
        assert [volume.first for volume in volumes] == CUTS[:-1]
        assert [volume.n_subjects for volume in volumes] == np.diff(CUTS).tolist()
        for name in ("n_residues", "residue_bytes"):
            assert sum(getattr(volume, name) for volume in volumes) == getattr(database, name)
        for volume in volumes:
            with Database.open(volume.path) as alone:
                assert volume.identity() == alone.identity()
    with Database.from_records(RECORDS[:3]) as database:
        with pytest.raises(DatabaseError, match="<memory>: is given twice"):
            Database.joined([database, database])
        (volume,) = database.volumes
        assert (volume.path, volume.first, volume.n_subjects) == ("", 0, 3)
        assert volume.identity() == database.identity()


@pytest.mark.parametrize("of", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("name", ["one.h5", "all.json"])
def test_shares_are_the_database(made: Path, name: str, of: int) -> None:
    with Database.open(made / name) as database:
        whole = blocks_of(database)
        shares = [database.share(place, of) for place in range(of)]
        parts = [blocks_of(share) for share in shares]
        assert [block for part in parts for block in part] == whole
        joined = RunLengths.counted([share.length_runs for share in shares])
        assert joined.ends.tolist() == database.length_runs.ends.tolist()
        largest = max(len(block) for _, block in whole)
        for share, part in zip(shares, parts, strict=True):
            assert share.residue_bytes == sum(len(block) for _, block in part)
            assert abs(share.residue_bytes - database.residue_bytes / of) <= largest
            assert len(share.length_runs) == sum(len(subjects) for subjects, _ in part)
            assert share.n_subjects == database.n_subjects
            assert share.header(199) == database.header(199)
        assert sum(share.n_residues for share in shares) == database.n_residues
    assert shares[0].info()["n_residues"] == shares[-1].info()["n_residues"]  # they outlive what they are of


def test_a_share_of_a_share_and_empty_ones(made: Path) -> None:
    with Database.open(made / "all.json") as database:
        whole = blocks_of(database)
        nested = [database.share(place, 2).share(other, 2) for place in range(2) for other in range(2)]
        assert [block for share in nested for block in blocks_of(share)] == whole
        empty = [share for share in (database.share(place, 100) for place in range(100)) if not share.residue_bytes]
        assert len(empty) >= 100 - len(whole)
        assert not any(blocks_of(share) for share in empty if not len(share.length_runs))


def test_the_manifest_is_small_and_known_by_its_content(made: Path, tmp_path: Path) -> None:
    manifest = read_manifest(made / "all.json")
    assert (manifest.n_subjects, manifest.mask, len(manifest.volumes)) == (200, "lower", 4)
    assert [volume.path for volume in manifest.volumes] == [f"part.{number}.h5" for number in range(4)]
    written = said(made / "all.json")
    assert (written["format"], written["n_subjects"]) == ("swsearch volumes", 200)
    assert is_database(made / "all.json") and not is_database(made / "in.fasta")
    (tmp_path / "other.json").write_text('{"format": "something"}')
    assert not is_database(tmp_path / "other.json")


# what may be wrong with a manifest


def copied(made: Path, folder: Path) -> Path:
    """Copy the volumes and their manifest."""
    for path in (*made.glob("part.*.h5"), made / "all.json"):
        shutil.copy(path, folder)
    return folder / "all.json"


def said(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def first_with(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["volumes"][0].update(changes)


def all_with(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest.update(changes)


WRONG = {
    "total": (all_with(n_subjects=201), "n_subjects is 201, its volumes have 200"),
    "residues": (all_with(n_residues=-1), "n_residues is -1, its volumes have"),
    "no total": (lambda manifest: manifest.pop("n_subjects"), "n_subjects is None, its volumes have 200"),
    "version": (all_with(format_version=2), "manifest version 2, this swsearch reads up to 1; upgrade it"),
    "no version": (all_with(format_version="1"), "format_version is '1', expected 1"),
    "mask": (all_with(mask="some"), "mask is 'some', expected one of none, lower, tantan"),
    "other mask": (all_with(mask="tantan"), "mask is tantan, volume part.0.h5 has lower"),
    "nothing": (all_with(volumes=[]), "volumes is not a list of 1 to"),
    "object": (all_with(volumes={}), "volumes is not a list of 1 to"),
    "text": (all_with(volumes=["part.0.h5"]), "volume 0 is 'part.0.h5', expected an object"),
    "sources": (all_with(sources=[1]), "sources is not a list of files"),
    "created": (all_with(created=1), "created or software is not text"),
    "absolute": (first_with(path="/etc/passwd"), "path is '/etc/passwd', expected a file in the manifest's folder"),
    "above": (first_with(path="a/../../part.0.h5"), "expected a file in the manifest's folder or below it"),
    "zero": (first_with(path="part.0.h5\0"), r"path is 'part.0.h5\x00', expected the name of a file"),
    "no path": (first_with(path=None), "path is None, expected the name of a file"),
    "long": (first_with(path="x" * 5000), "not found; restore it, or build the volumes again"),
    "folder": (first_with(path="."), "is a directory, expected a database file"),
    "missing": (first_with(path="part.9.h5"), "part.9.h5 not found; restore it, or build the volumes again"),
    "itself": (first_with(path="all.json"), "is a manifest of volumes, expected a database file; give one"),
    "FASTA": (first_with(path="in.fasta"), "not found"),
    "twice": (first_with(path="./part.1.h5"), "volume 'part.1.h5' is given twice"),
    "bytes": (first_with(n_bytes=5), "is not the volume that"),
    "huge": (first_with(n_bytes=10**30), "n_bytes is 1000000000000000000000000000000, expected a number from 0 on"),
    "part": (first_with(n_subjects=1.5), "n_subjects is 1.5, expected a number from 0 on"),
    "truth": (first_with(n_subjects=True), "n_subjects is True, expected a number from 0 on"),
    "identity": (first_with(identity="0" * 64), "is not the volume that"),
    "no identity": (first_with(identity="x"), "identity is 'x', expected 64 hexadecimal digits"),
    "counts": (lambda manifest: [manifest["volumes"][0].update(n_subjects=69), manifest.update(n_subjects=199)],
               "volume part.0.h5: n_subjects is 69, the file has 70"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_manifest_gets_one_sentence(made: Path, tmp_path: Path, case: str) -> None:
    path = copied(made, tmp_path)
    manifest = said(path)
    change, expected = WRONG[case]
    change(manifest)
    path.write_text(json.dumps(manifest))
    for use in (Database.open, verify_database):
        with pytest.raises(DatabaseError) as caught:
            use(path)
        assert caught.value.exit_code == 2 and str(path.parent) in str(caught.value)
        assert expected in str(caught.value) and len(str(caught.value)) < 600 + 5000 * (case == "long")


HOSTILE = {
    "truncated": (lambda text: text[: len(text) // 2], "is not JSON"),
    "trailing": (lambda text: text + "{}", "is not JSON (Extra data)"),
    "twice": (lambda text: text.replace('"mask"', '"n_subjects": 3, "mask"'), "'n_subjects' is given twice"),
    "digits": (lambda text: text.replace('"n_subjects": 70', f'"n_subjects": {"7" * 5000}'), "it is not JSON"),
    "endless": (lambda text: text.replace('"n_subjects": 70', '"n_subjects": 1e999'), "expected a number from 0 on"),
    "no number": (lambda text: text.replace('"n_subjects": 70', '"n_subjects": NaN'), "expected a number from 0 on"),
    "deep": (lambda text: text.replace('"mask"', f'"more": {"[" * 100_000}, "mask"'), "it is not JSON"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_json(made: Path, tmp_path: Path, case: str) -> None:
    path = copied(made, tmp_path)
    change, expected = HOSTILE[case]
    path.write_text(change(path.read_text()))
    with pytest.raises(DatabaseDamageError) as caught:
        Database.open(path)
    assert str(caught.value).startswith(f"{path}: damaged: ") and expected in str(caught.value)


def test_what_is_no_text_and_what_is_much(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copied(made, tmp_path)
    good = path.read_bytes()
    path.write_bytes(codecs.BOM_UTF8 + good)  # an editor's
    Database.open(path).close()
    path.write_bytes(good.replace(b"in.fasta", b"\xff\xfe"))
    with pytest.raises(DatabaseDamageError, match="it is not JSON"):
        Database.open(path)
    monkeypatch.setattr("swsearch.db.manifest.MOST_MANIFEST_BYTES", 100)
    with pytest.raises(DatabaseDamageError, match="more than 100 bytes, too long for a manifest"):
        Database.open(path)
    path.write_bytes(b"{}")
    with pytest.raises(DatabaseError, match="is not a swsearch database"):
        Database.open(path)


def test_a_volume_that_was_replaced(made: Path, tmp_path: Path) -> None:
    path = copied(made, tmp_path)
    shutil.copy(path.with_name("part.0.h5"), path.with_name("part.2.h5"))
    with pytest.raises(DatabaseError, match=r"part\.2\.h5: is not the volume that .*all\.json names \("):
        Database.open(path)
    # built again of the same sequences it has another age and nothing else
    fasta = write_fasta(tmp_path / "in.fasta", RECORDS[71:160])
    build_database(fasta, tmp_path / "part.2.h5", mask="lower")
    with Database.open(path) as database:
        assert database.n_subjects == 200
    with pytest.raises(DatabaseError, match=r"is not the volume that .*names \(SHA-256 \w+, expected \w+\); restore"):
        verify_database(path)


def test_a_file_once_and_one_mask(made: Path, tmp_path: Path) -> None:
    build_database(made / "in.fasta", tmp_path / "plain.h5")
    (tmp_path / "link.h5").symlink_to(made / "part.1.h5")
    for given in ([made / "part.1.h5", made / "part.1.h5"], [tmp_path / "link.h5", made / "part.1.h5"],
                  [made / "all.json", made / "part.1.h5"]):  # fmt: skip
        with pytest.raises(DatabaseError, match=r"part\.1\.h5: is given twice; name each file once"):
            Database.open(given)
    with pytest.raises(DatabaseError, match=r"plain\.h5: was built with the mask none, .*one\.h5 with lower; build"):
        Database.open([made / "one.h5", tmp_path / "plain.h5"])
    for nothing in ([], 3, b"one.h5", [None]):
        with pytest.raises(OptionError, match=r"path: got .*expected names of databases, at least one"):
            Database.open(nothing)  # type: ignore[arg-type]
    shutil.copy(made / "part.1.h5", tmp_path / "again.h5")  # volumes of input that repeats itself may be the same
    with pytest.warns(SwsearchWarning, match=r"again\.h5: is a copy of .*part\.1\.h5; their subjects are searched"):
        database = Database.open([made / "part.1.h5", tmp_path / "again.h5"])
    with database:
        assert database.find(RECORDS[70][0].split()[0]) == [0, 1]


# writing manifests


def test_writing(made: Path, tmp_path: Path) -> None:
    path = copied(made, tmp_path)
    volumes = sorted(tmp_path.glob("part.*.h5"))
    before = path.read_bytes()
    with pytest.raises(OutputError, match=r"part\.0\.h5: is one of the inputs"):
        write_manifest(volumes[0], volumes)
    with pytest.raises(OutputError, match="exists; choose another name or allow to overwrite it"):
        write_manifest(path, volumes, overwrite=False)
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(OutputError, match="exists and is not a swsearch database"):
        write_manifest(tmp_path / "notes.json", volumes)
    with pytest.raises(DatabaseError, match="is given twice"):
        write_manifest(path, [volumes[0], volumes[0]])
    (tmp_path / "below").mkdir()
    with pytest.raises(DatabaseError, match=r"is outside the folder of .*; move it into that folder"):
        write_manifest(tmp_path / "below" / "all.json", volumes)
    for wrong in ([], ["missing.h5"], [made / "in.fasta"]):
        with pytest.raises(SwsearchError):
            write_manifest(path, wrong)
    assert path.read_bytes() == before and not list(tmp_path.glob(".*"))
    volumes[0].rename(tmp_path / "below" / "first.h5")
    manifest = write_manifest(path, [tmp_path / "below" / "first.h5", *volumes[1:]])
    assert [volume.path for volume in manifest.volumes] == ["below/first.h5", *(each.name for each in volumes[1:])]
    with Database.open(path) as database:  # sources are those of the volumes
        assert [source["records"] for source in database.sources()] == [70, 1, 89, 40]


def test_a_link_to_a_manifest(made: Path, tmp_path: Path) -> None:
    """Workflows put links into a folder of their own: to the manifest alone, or to the volumes too."""
    (tmp_path / "link").symlink_to(made / "all.json")
    with Database.open(tmp_path / "link") as database:
        assert database.n_subjects == 200
    for number in range(4):
        (tmp_path / f"part.{number}.h5").symlink_to(made / f"part.{number}.h5")
    shutil.copy(made / "all.json", tmp_path / "copy.json")
    with Database.open(tmp_path / "copy.json") as database:
        assert database.volumes[2].path == str(tmp_path / "part.2.h5")


# using it


def test_verify(made: Path, tmp_path: Path) -> None:
    path = copied(made, tmp_path)
    checked = verify_database(path)
    assert (checked["volumes"], checked["subjects"], checked["segments"]) == (4, 200, 4)
    assert checked["bytes"] == sum(each.stat().st_size for each in tmp_path.glob("*.h5"))
    for number in (1, 3):
        volume = tmp_path / f"part.{number}.h5"
        raw = bytearray(volume.read_bytes())
        raw[-20_000 if len(raw) > 40_000 else 600] ^= 1
        volume.write_bytes(raw)
        with pytest.raises(DatabaseDamageError) as caught:
            verify_database(path)
        assert str(volume) in str(caught.value)
    assert str(caught.value).startswith(f"{path}: damaged: {tmp_path}/part.1.h5: ")
    (tmp_path / "part.0.h5").unlink()
    with pytest.raises(DatabaseDamageError, match=r"volume .*part\.0\.h5 not found"):
        verify_database(path)


def test_nothing_is_appended_to_a_manifest(made: Path) -> None:
    with pytest.raises(DatabaseError, match=r"is a manifest of volumes, expected a database file; build"):
        append_database(made / "all.json", made / "in.fasta", on_duplicate="keep")


def test_info_and_identity(made: Path, tmp_path: Path) -> None:
    with Database.open(made / "one.h5") as one, Database.open(made / "all.json") as several:
        mine, theirs = several.info(), one.info()
        json.dumps(mine)
        for name in ("n_subjects", "n_residues", "n_empty", "n_masked", "mask", "longest", "shortest", "letters"):
            assert mine[name] == theirs[name]
        assert (mine["n_segments"], len(mine["volumes"]), "volumes" in theirs) == (4, 4, False)
        assert mine["n_bytes"] == sum(volume["n_bytes"] for volume in mine["volumes"])
        assert several.share(0, 3).info() == mine
        with Database.open([made / f"part.{number}.h5" for number in range(4)]) as listed:
            assert listed.identity() == several.identity() != one.identity()
        with Database.open([made / f"part.{number}.h5" for number in (1, 0, 2, 3)]) as other:
            assert other.identity() != several.identity()
    shutil.copy(made / "one.h5", tmp_path / "one.h5")
    write_manifest(tmp_path / "all.json", [tmp_path / "one.h5"])
    with Database.open(tmp_path / "all.json") as one_volume, Database.open([made / "one.h5"]) as listed:
        assert one_volume.identity() == listed.identity() == theirs_identity(made)
        assert listed.name == str(made / "one.h5")
        assert one_volume.sources() == theirs["segments"][0]["sources"]


def theirs_identity(made: Path) -> str:
    with Database.open(made / "one.h5") as one:
        return one.identity()


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="no /proc here")
def test_files_are_closed_with_the_last_of_their_users(made: Path) -> None:
    gc.collect()
    before = open_files()
    with pytest.raises(DatabaseError, match="is given twice"):
        Database.open([made / "all.json", made / "part.1.h5"])
    assert open_files() == before
    database = Database.open(made / "all.json")
    assert len(open_files()) == len(before) + 4
    twin, joined = database.shared(), Database.joined([database])
    database.close()
    share = joined.share(1, 2)
    twin.close()
    joined.close()
    with pytest.raises(DatabaseError, match="this Database was closed"):
        database.share(0, 1)
    assert share.header(0) == RECORDS[0][0].encode()
    share.close()
    gc.collect()
    assert open_files() == before


def open_files() -> list[str]:
    found = []
    for each in OPEN_FILES.iterdir():
        with suppress(OSError):
            found.append(str(each.readlink()))
    return sorted(name for name in found if ".h5" in name)


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="no /proc here")
def test_more_volumes_than_files_may_be_open(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_OPEN", 2)
    before = len(open_files())
    with Database.open(made / "one.h5") as one, Database.open(made / "all.json") as database:
        assert len(open_files()) <= before + 3
        assert residues_by_subject(database) == residues_by_subject(one)
        for mine, theirs in zip(database.headers_of(range(200)), one.headers_of(range(200)), strict=True):
            assert np.array_equal(mine, theirs)
        assert len(open_files()) <= before + 3
        with ThreadPoolExecutor(8) as threads:  # descriptors are taken away while others read through them
            some = [index * 67 % 200 for index in range(400)]
            assert list(threads.map(database.header, some)) == [RECORDS[index][0].encode() for index in some]
    path = copied(made, tmp_path)
    with Database.open(path) as database:
        shutil.copy(tmp_path / "part.0.h5", tmp_path / "new.h5")
        (tmp_path / "new.h5").replace(tmp_path / "part.0.h5")
        with pytest.raises(DatabaseError, match=r"part\.0\.h5: was changed or replaced while it was in use"):
            database.header(0)
        (tmp_path / "part.0.h5").unlink()
        with pytest.raises(DatabaseError, match=r"part\.0\.h5: no such database"):
            database.header(0)
        assert database.header(199) == RECORDS[199][0].encode()


def test_no_descriptor_is_left(made: Path) -> None:
    """The process has used its own up, but for those that volumes can give back."""
    with Database.open(made / "all.json") as database:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = []
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, limits[0]), limits[1]))
            for volume in database._held.files[:2]:
                volume.source.give_back()  # type: ignore[attr-defined]
            with suppress(OSError):
                while True:
                    taken.append(os.open(made / "in.fasta", os.O_RDONLY))
            assert database.header(0) == RECORDS[0][0].encode()
            assert database.header(70) == RECORDS[70][0].encode()
        finally:
            for each in taken:
                os.close(each)
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


# lists of subjects


def found_by(subjects: Any) -> list[tuple[str, int]]:
    (result,) = swsearch.search([("q", HBA)], subjects, engine="cpu", threads=1, max_hits=20, statistics="published")
    return [(hit.subject_id, hit.score) for hit in result.hits]


def test_subjects_from_several_places(made: Path, tmp_path: Path) -> None:
    expected = found_by(made / "one.h5")
    assert found_by(made / "all.json") == expected
    assert found_by([made / f"part.{number}.h5" for number in range(4)]) == expected
    fasta = write_fasta(tmp_path / "last.fasta", RECORDS[160:])
    mixed = [made / "part.0.h5", made / "part.1.h5", made / "part.2.h5", fasta]
    assert found_by(mixed) == expected
    with Database.open(made / "part.0.h5") as database, open_subjects([database, *mixed[1:]]) as joined:
        assert joined.name == ", ".join(map(str, mixed)) and joined.mask == "lower"
        assert found_by([database, *mixed[1:]]) == expected
        joined.close()
        assert database.header(0) == RECORDS[0][0].encode()  # is the caller's
        with pytest.raises(DatabaseError, match="was built with the mask none"):
            open_subjects([database, fasta], mask="none")
    with pytest.raises(DatabaseError, match="this Database was closed"):
        open_subjects([fasta, database])
    with open_subjects([fasta, fasta]) as twice:
        assert (twice.n_subjects, twice.mask) == (80, "none")
    with open_subjects([fasta, str(fasta)]) as twice:
        assert twice.n_subjects == 80
    with pytest.raises(OptionError, match="got 'MKVLAA', expected only files and databases, or only sequences"):
        open_subjects([fasta, "MKVLAA"])
    with pytest.raises(DatabaseError, match="no such file"):
        open_subjects([fasta, tmp_path / "missing.fasta"])
    with open_subjects(["MKVLAA", "WWPP"]) as letters:  # as before
        assert letters.n_subjects == 2
