"""The files of a database in volumes appear all together or not at all, whatever happens."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.db_helpers import HBA, HBB
from swsearch.db import Database, build_database, disk, split_database
from swsearch.db.volume_files import VolumeFiles, volume_path
from swsearch.errors import OutputError, SequenceError

RECORD = f"{HBA}{HBB}\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.fasta"
    path.write_text("".join(f">r{i}\n{RECORD}" for i in range(4)))
    return path


def volumes(source: Path, n: int, name: str = "out.json", **options: Any) -> None:
    """Build a database in ``n`` volumes, of one record each."""
    part = source.with_name("part.fasta")
    part.write_text("".join(f">r{i}\n{RECORD}" for i in range(n)))
    try:
        build_database(part, source.parent / name, volume_size=1, **options)
    finally:
        part.unlink()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "in.fasta")


@pytest.mark.parametrize(
    ("manifest", "volume"),
    [
        ("trembl.json", "trembl.007.h5"),
        ("trembl.h5", "trembl.007.h5"),
        ("trembl", "trembl.007.h5"),
        ("uniprot_2026.03", "uniprot_2026.03.007.h5"),
        ("a b.v2.json", "a b.v2.007.h5"),
    ],
)
def test_names(manifest: str, volume: str) -> None:
    assert volume_path(Path("somewhere") / manifest, 7) == Path("somewhere") / volume


def test_a_build_with_fewer_volumes_leaves_none_of_the_earlier_ones(tmp_path: Path, source: Path) -> None:
    volumes(source, 4)
    assert names(tmp_path) == ["out.000.h5", "out.001.h5", "out.002.h5", "out.003.h5", "out.json"]
    for name in ("out.001.h5", "out.json"):
        (tmp_path / name).chmod(0o640)
    with Database.open(tmp_path / "out.json") as earlier:
        volumes(source, 2)
        assert earlier.identifier(3) == "r3"  # whoever has it open keeps it
    assert names(tmp_path) == ["out.000.h5", "out.001.h5", "out.json"]
    for name in ("out.001.h5", "out.json"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o640
    with Database.open(tmp_path / "out.json") as database:
        assert database.n_subjects == 2
    build_database(source, tmp_path / "out.json")  # one file under the manifest's name
    assert names(tmp_path) == ["out.json"]
    volumes(source, 2)  # and volumes in its place
    assert names(tmp_path) == ["out.000.h5", "out.001.h5", "out.json"]


def test_what_is_not_replaced(tmp_path: Path, source: Path) -> None:
    volumes(source, 2)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with pytest.raises(OutputError, match=r"out\.json: exists; choose another name or allow"):
        volumes(source, 1, overwrite=False)
    (tmp_path / "out.002.h5").write_bytes(before["out.001.h5"])
    with pytest.raises(
        OutputError, match=r"out\.002\.h5: is named as a volume of out\.json but does not belong to it"
    ):
        volumes(source, 1)
    (tmp_path / "out.002.h5").unlink()
    (tmp_path / "out.001.h5").write_text("mine")
    with pytest.raises(OutputError, match=r"out\.001\.h5: exists and is not a swsearch database"):
        volumes(source, 1)
    (tmp_path / "out.001.h5").write_bytes(before["out.001.h5"])
    for text in ("{}", '{"format": "something else"}', ">a\nMKV\n"):
        (tmp_path / "out.json").write_text(text)
        with pytest.raises(
            OutputError, match=r"out\.json: exists and is not a swsearch database; choose another name"
        ):
            volumes(source, 1)
    (tmp_path / "out.json").unlink()
    with pytest.raises(OutputError, match=r"out\.000\.h5: is named as a volume of out\.json"):
        volumes(source, 1)
    (tmp_path / "out.json").write_bytes(before["out.json"])
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_a_manifest_that_is_damaged_is_replaced_but_its_volumes_are_not(tmp_path: Path, source: Path) -> None:
    volumes(source, 2)
    said = json.loads((tmp_path / "out.json").read_text())
    (tmp_path / "out.json").write_text(json.dumps(said | {"n_subjects": 5}))
    with pytest.raises(OutputError, match="but does not belong to it"):
        volumes(source, 2)


ENDS = [KeyboardInterrupt(), OSError(28, "No space left on device")]


@pytest.mark.parametrize("error", ENDS, ids=["interrupt", "full"])
@pytest.mark.parametrize(
    ("at", "number"),
    [
        ("db.layout.DatasetWriter.close", 3),
        ("db.writing.seal", 2),
        ("output_files.TemporaryFile.publish", 1),
        ("output_files.TemporaryFile.publish", 2),
        ("db.volume_files.write_manifest", 1),
        ("db.manifest.open_outputs", 1),
    ],
)
def test_what_ends_meanwhile_leaves_what_was_there(
    tmp_path: Path, source: Path, at: str, number: int, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def failing(found: Any) -> Any:
        def called(*arguments: Any, **options: Any) -> Any:
            calls.append(at)
            if len(calls) == number:
                raise error
            return found(*arguments, **options)

        return called

    for earlier in (0, 3):
        if earlier:
            volumes(source, earlier)
        before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(f"swsearch.{at}", failing(_resolved(f"swsearch.{at}")))
            with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
                volumes(source, 2)
        assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def _resolved(dotted: str) -> Any:
    """Return what a dotted name stands for."""
    import importlib

    module, rest = dotted, []
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ImportError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    for each in rest:
        found = getattr(found, each)
    return found


def test_a_bad_record_late_in_the_input_leaves_nothing(tmp_path: Path, source: Path) -> None:
    (tmp_path / "in.fasta").write_text(f">a\n{RECORD}>b\nM-\n")
    with pytest.raises(SequenceError, match="gap character"):
        build_database(source, tmp_path / "out.json", volume_size=1)
    assert names(tmp_path) == []


def test_a_disk_without_room_is_seen_before(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_database(source, tmp_path / "one.h5")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1500, total=1 << 40))
    with pytest.raises(OutputError, match=r"out\.json: the build will take about .* 1,500 bytes are free"):
        build_database(source, tmp_path / "out.json", volume_size=1 << 20)
    with pytest.raises(OutputError, match=r"out\.json: the build takes .* bytes are free"):
        split_database(tmp_path / "one.h5", tmp_path / "out.json", volumes=2)
    assert names(tmp_path) == ["one.h5"]


def test_an_output_that_is_a_link(tmp_path: Path, source: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere" / "real.json")
    volumes(source, 2, "link.json")
    assert names(tmp_path / "elsewhere") == ["real.000.h5", "real.001.h5", "real.json"]
    with Database.open(tmp_path / "link.json") as database:
        assert database.n_subjects == 2


def test_a_folder_that_is_not_there(tmp_path: Path, source: Path) -> None:
    with pytest.raises(OutputError, match="none not found; create it"):
        volumes(source, 2, "none/out.json")
    with pytest.raises(OutputError, match="is a directory"):
        VolumeFiles(tmp_path, [], True)
