"""A database of several files is what one file of the same subjects is."""

from __future__ import annotations

import codecs
import gc
import json
import os
import re
import shutil
import subprocess
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.command_line import SWSEARCH
from support.databases import Entry, written
from support.db_helpers import HBA, HBB
from swsearch.blocks import RunLengths
from swsearch.db import Database, build_database, is_database, verify_database, write_manifest
from swsearch.errors import DatabaseDamageError, DatabaseError, OptionError, OutputError, SwsearchWarning
from swsearch.inputs import open_subjects

OPEN_FILES = Path("/proc/self/fd")

RECORDS: list[Entry] = [
    (f"id{i} number {i}", (HBA + HBB)[i % 7 : i % 7 + (37 * i) % 190] + ("mkv" if i % 3 else "")) for i in range(200)
]

CUTS = [0, 70, 71, 160, 200]
"""Where the records are cut into volumes."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one file, the same in four volumes, and their manifest."""
    folder = tmp_path_factory.mktemp("made")
    build_database(written(folder / "in.fasta", RECORDS), folder / "one.h5", mask="lower")
    for number, (first, last) in enumerate(pairwise(CUTS)):
        part = written(folder / "part.fasta", RECORDS[first:last])
        build_database(part, folder / f"part.{number}.h5", mask="lower")
    write_manifest(folder / "all.json", parts_of(folder))
    return folder


def parts_of(folder: Path) -> list[Path]:
    return [folder / f"part.{number}.h5" for number in range(4)]


def blocks_of(database: Database, **options: Any) -> list[tuple[list[int], bytes]]:
    """Return what is loaded, block by block."""
    found = []
    for chunk in database.chunks(20_000, **options):
        for number, block in enumerate(chunk):
            found.append((chunk.subjects[chunk.lanes(number)].tolist(), block.tobytes()))
    return found


def test_volumes_say_where_they_begin(made: Path) -> None:
    with Database.open(made / "all.json") as database:
        volumes = database.volumes
        assert [source["records"] for source in database.sources()] == [70, 1, 89, 40]
        found = [(volume.path, volume.first, volume.n_subjects) for volume in volumes]
        assert found == [*zip(map(str, parts_of(made)), CUTS[:-1], np.diff(CUTS), strict=True)]
        for name in ("n_residues", "residue_bytes"):
            assert sum(getattr(volume, name) for volume in volumes) == getattr(database, name)
        for volume in volumes:
            with Database.open(volume.path) as alone:
                assert volume.identity() == alone.identity()
    with Database.from_records(RECORDS[:3]) as database:
        with pytest.raises(DatabaseError, match="<memory>: is given twice"):
            Database.concatenate([database, database])
        assert [(each.path, each.first, each.n_subjects) for each in database.volumes] == [("", 0, 3)]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("name", ["one.h5", "all.json"])
def test_shares_are_the_database(made: Path, name: str, of: int) -> None:
    with Database.open(made / name) as database:
        whole = blocks_of(database)
        shares = [database.share(place, of) for place in range(of)]
        parts = [blocks_of(share) for share in shares]
        assert [block for part in parts for block in part] == whole
        joined = RunLengths.from_unsorted([share.length_runs for share in shares])
        assert joined.ends.tolist() == database.length_runs.ends.tolist()
        largest = max(len(block) for _, block in whole)
        for share, part in zip(shares, parts, strict=True):
            assert share.residue_bytes == sum(len(block) for _, block in part)
            assert abs(share.residue_bytes - database.residue_bytes / of) <= largest
            assert len(share.length_runs) == sum(len(subjects) for subjects, _ in part)
            assert (share.n_subjects, share.header(199)) == (200, RECORDS[199][0].encode())
        assert sum(share.n_residues for share in shares) == database.n_residues
        nested = [share.share(place, 2) for share in shares for place in range(2)]
        assert [block for share in nested for block in blocks_of(share)] == whole
    assert shares[0].info()["n_residues"] == shares[-1].info()["n_residues"]  # they outlive what they are of


# what may be wrong with a manifest


def copied(made: Path, folder: Path) -> Path:
    """Copy the volumes and their manifest."""
    for path in (*made.glob("part.*.h5"), made / "all.json"):
        shutil.copy(path, folder)
    return folder / "all.json"


WRONG: dict[str, tuple[str | bytes, Any, str]] = {
    "version": ("format_version", 5, "format version 5, this swsearch reads up to 4; upgrade"),
    "no version": ("format_version", "4", "attribute format_version is '4', expected 4"),
    "other mask": ("mask", "tantan", "it says {'mask': 'tantan', 'taxids': 0}, part.0.h5 says otherwise"),
    "text": ("segments", ["part.0.h5"], "/segments/0 is not an object"),
    "before": ("before", [1, 2, "0" * 64], "a manifest names something else"),
    "absolute": ("file", "/etc/passwd", "file is '/etc/passwd', expected a file in the manifest's folder"),
    "above": ("file", "a/../../part.0.h5", "expected a file in the manifest's folder or below it"),
    "zero": ("file", "part.0.h5\0", r"file is 'part.0.h5\x00', expected the name of a file"),
    "no path": ("file", None, "file is None, expected the name of a file"),
    "long": ("file", "x" * 5000, "not found; restore it, or build the volumes again"),
    "folder": ("file", ".", "is a directory, expected a database file"),
    "pipe": ("file", "pipe", "is a pipe or a device"),
    "circle of links": ("file", "loop", "not found"),
    "surrogate": ("file", "\ud800", "not found"),
    "missing": ("file", "part.9.h5", "part.9.h5 not found; restore it, or build the volumes again"),
    "itself": ("file", "all.json", "is a manifest itself, expected a database file"),
    "another manifest": ("file", "other.json", "is a manifest itself, expected a database file"),
    "FASTA": ("file", "in.fasta", "is not a swsearch database; build one from FASTA"),
    "twice": ("file", ".//part.1.h5", "a file is given twice; name each file once"),
    "part": ("n_subjects", 1.5, "n_subjects is 1.5, expected a number from 0 on"),
    "truth": ("n_residues", True, "n_residues is True, expected a number from 0 on"),
    "identity": ("identity", "0" * 64, "is not the volume that"),
    "no identity": ("identity", "x", "identity is 'x', expected 64 hexadecimal digits"),
    "counts": ("n_subjects", 69, "volume part.0.h5: n_subjects is 69, the file has 70"),
    "truncated": (b"}", b"", "the contents are not JSON"),
    "endless": (b":70", b":1e999", "expected a number from 0 on"),
    "no text": (b"part.0", b"\xff\xfe", "the contents are not JSON"),
    "much": (b"]}", b" " * (4 << 20) + b"]}", "more than 3,145,728 bytes, too long for a manifest"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_manifest_gets_one_sentence(made: Path, tmp_path: Path, case: str) -> None:
    path = copied(made, tmp_path)
    shutil.copy(made / "in.fasta", tmp_path)
    shutil.copy(path, tmp_path / "other.json")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    name, value, expected = WRONG[case]
    if isinstance(name, bytes):
        path.write_bytes(path.read_bytes().replace(name, value, 1))
    else:
        manifest = json.loads(path.read_text())
        (manifest["segments"][0] if name in manifest["segments"][0] else manifest)[name] = value
        path.write_text(json.dumps(manifest))
    for use in (Database.open, verify_database):
        with pytest.raises(DatabaseError) as caught:
            use(path)
        assert caught.value.exit_code == 2 and str(path.parent) in str(caught.value)
        assert expected in str(caught.value) and len(str(caught.value)) < 800 + 5000 * (case == "long")


def test_what_is_a_manifest(made: Path, tmp_path: Path) -> None:
    path = copied(made, tmp_path)
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())  # an editor's
    Database.open(path).close()
    assert is_database(path) and not is_database(made / "in.fasta")
    for text in ('{"format": "something"}', "{}"):
        path.write_text(text)
        assert not is_database(path)
        with pytest.raises(DatabaseError, match="is not a swsearch database"):
            Database.open(path)


def test_a_volume_that_was_replaced(made: Path, tmp_path: Path) -> None:
    path = copied(made, tmp_path)
    with Database.open(path) as database:
        shutil.copy(path.with_name("part.0.h5"), tmp_path / "new")
        (tmp_path / "new").replace(path.with_name("part.2.h5"))
        assert database.header(71) == RECORDS[71][0].encode()  # what is open stays
    words = r"part\.2\.h5: is not the volume that .*all\.json names \(identity \w+, expected \w+\); restore"
    for use in (Database.open, verify_database):
        with pytest.raises(DatabaseError, match=words):
            use(path)
    # built again of the same sequences it has another age and nothing else
    build_database(written(tmp_path / "in.fasta", RECORDS[71:160]), tmp_path / "part.2.h5", mask="lower")
    assert verify_database(path)["subjects"] == 200


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


def test_a_manifest_is_written_of_volumes_in_its_folder_or_below(made: Path, tmp_path: Path) -> None:
    path, volumes = copied(made, tmp_path), parts_of(tmp_path)
    before, below = path.read_bytes(), tmp_path / "below"
    below.mkdir()
    for output, given, error, words in (
        (volumes[0], volumes, OutputError, r"part\.0\.h5: is one of the inputs"),
        (path, [volumes[0], volumes[0]], DatabaseError, "is given twice"),
        (below / "all.json", volumes, DatabaseError, "is outside the folder of .*; move it into that folder"),
        (path, [], OptionError, "at least one"),
        (path, ["missing.h5"], DatabaseError, "no such database"),
        (path, [made / "in.fasta"], DatabaseError, "is not a swsearch database"),
    ):
        with pytest.raises(error, match=words):
            write_manifest(output, given)
    with pytest.raises(OutputError, match="exists; choose another name or allow to overwrite it"):
        write_manifest(path, volumes, overwrite=False)
    assert path.read_bytes() == before and not list(tmp_path.glob(".*"))
    volumes[0].rename(below / "first.h5")
    write_manifest(path, [below / "first.h5", *volumes[1:]])
    with Database.open(path) as database:
        found = [Path(volume.path).relative_to(tmp_path).as_posix() for volume in database.volumes]
    assert found == ["below/first.h5", *(each.name for each in volumes[1:])]


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


def test_verify(made: Path, tmp_path: Path) -> None:
    path = copied(made, tmp_path)
    checked = verify_database(path)
    assert (checked["volumes"], checked["subjects"], checked["segments"]) == (4, 200, 4)
    assert checked["bytes"] == sum(each.stat().st_size for each in tmp_path.glob("*.h5"))
    for number, words in ((1, ""), (3, f"^{path}: damaged: {tmp_path}/part.1.h5: .*")):
        volume = tmp_path / f"part.{number}.h5"
        raw = bytearray(volume.read_bytes())
        raw[-20_000 if len(raw) > 40_000 else 600] ^= 1
        volume.write_bytes(raw)
        with pytest.raises(DatabaseDamageError, match=f"{words}{volume}: "):
            verify_database(path)


def test_info_and_identity(made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "one.h5", tmp_path)
    write_manifest(tmp_path / "all.json", [tmp_path / "one.h5"])
    given = [made / "all.json", parts_of(made), parts_of(made)[::-1], made / "one.h5", tmp_path / "all.json"]
    with ExitStack() as held:
        several, listed, other, one, one_volume = (held.enter_context(Database.open(each)) for each in given)
        mine, theirs = json.loads(json.dumps(several.info())), one.info()
        for name in ("n_subjects", "n_residues", "n_empty", "n_masked", "mask", "longest", "shortest", "letters"):
            assert mine[name] == theirs[name]
        assert (mine["n_segments"], len(mine["volumes"]), "volumes" in theirs) == (4, 4, False)
        assert mine["n_bytes"] == sum(volume["n_bytes"] for volume in mine["volumes"])
        assert several.share(0, 3).info() == mine and one_volume.sources() == one.sources()
        assert (several.name, listed.name) == (str(given[0]), ", ".join(map(str, parts_of(made))))
        assert several.identity() == listed.identity() and one.identity() == one_volume.identity()
        assert len({each.identity() for each in (several, other, one)}) == 3


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="no /proc here")
def test_files_are_closed_with_the_last_of_their_users(made: Path) -> None:
    gc.collect()
    before = open_files()
    with pytest.raises(DatabaseError, match="is given twice"):
        Database.open([made / "all.json", made / "part.1.h5"])
    assert open_files() == before
    database = Database.open(made / "all.json")
    assert len(open_files()) == len(before) + 4
    twin, joined = database.duplicate(), Database.concatenate([database])
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


def test_more_volumes_than_files_may_be_open(tmp_path: Path) -> None:
    """The soft limit is raised; the hard one is told of."""
    build_database(written(tmp_path / "in.fasta", [RECORDS[9]]), tmp_path / "0.h5")
    names = [f"{number}.h5" for number in range(120)]
    for name in names[1:]:
        shutil.copy(tmp_path / "0.h5", tmp_path / name)
    words = ["search", "in.fasta", *names, "--engine", "cpu", "--quiet", "--outfmt", "6 sseqid"]
    for options, code, hits in (("-S -n", 0, len(names)), ("-n", 2, 0)):
        line = ["bash", "-c", f'ulimit {options} 100; exec "$@"', "limited", *SWSEARCH, *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout.count(RECORDS[9][0].split()[0])) == (code, hits), done.stderr
    assert re.search(r"error: \d+\.h5: cannot be opened: Too many open files; allow .*: ulimit -n$", done.stderr)


def test_subjects_from_several_places(made: Path, tmp_path: Path) -> None:
    fasta = written(tmp_path / "last.fasta", RECORDS[160:])
    mixed = [*parts_of(made)[:3], fasta]
    with Database.open(made / "part.0.h5") as database, open_subjects([database, *mixed[1:]]) as joined:
        assert (joined.name, joined.mask, joined.n_subjects) == (", ".join(map(str, mixed)), "lower", 200)
        joined.close()
        assert database.header(0) == RECORDS[0][0].encode()  # is the caller's
        with pytest.raises(DatabaseError, match="was built with the mask none"):
            open_subjects([database, fasta], mask="none")
    for subjects, error, words in (
        ([fasta, database], DatabaseError, "this Database was closed"),
        ([fasta, "MKVLAA"], OptionError, "got 'MKVLAA', expected only files and databases, or only sequences"),
        ([fasta, tmp_path / "missing.fasta"], DatabaseError, "no such file"),
    ):
        with pytest.raises(error, match=words):
            open_subjects(subjects)
    for subjects, n in (([fasta, fasta], 80), ([fasta, str(fasta)], 80), (["MKVLAA", "WWPP"], 2)):
        with open_subjects(subjects) as found:
            assert (found.n_subjects, found.mask) == (n, "none")
