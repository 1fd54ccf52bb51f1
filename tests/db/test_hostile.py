"""Databases that are made to do harm: each ends with exit code 2 and the place, and nothing is read but the file."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from support import command_line
from support.db_helpers import HBA, HBB
from support.samples import sample
from swsearch.db import Database, append_database, build_database, verify_database
from swsearch.db.format import LIBVER, USER_BLOCK, UserBlock
from swsearch.db.hdf5_messages import checksum
from swsearch.db.writing import seal
from swsearch.errors import DatabaseDamageError, DatabaseError

SECRET = "the bytes of another file" * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "in.fasta").write_text(f">a alpha\n{HBA[:40]}\n>b beta\n{HBB.lower()[:20]}{HBA[:9]}\n>empty\n")
    build_database(folder / "in.fasta", folder / "sound.h5", mask="lower")
    append_database(folder / "sound.h5", folder / "in.fasta", on_duplicate="keep")
    (folder / "secret").write_text(SECRET)
    os.mkfifo(folder / "pipe")
    return folder


def remade(group: h5py.Group, name: str, data: Any, **options: Any) -> None:
    """Put another dataset in the place of one."""
    del group[name]
    group.create_dataset(name, data=data, **options)


def headers(file: h5py.File) -> Any:
    return file["segments/0/headers"][()]


def chunked(file: h5py.File) -> None:
    remade(file["segments/0"], "headers", headers(file), chunks=(8,))


def compressed(file: h5py.File) -> None:
    remade(file["segments/0"], "headers", headers(file), chunks=(8,), compression="gzip")


def bomb(file: h5py.File) -> None:
    """A gigabyte of zeros in some kilobytes."""
    remade(file["segments/0"], "headers", None, shape=(1 << 30,), dtype="u1", chunks=(1 << 26,), compression="gzip")
    del file["segments/0/checksums/headers"]
    file["segments/0/checksums"].create_dataset("headers", shape=(1024,), dtype="<u4")


def chunked_sums(file: h5py.File) -> None:
    sums = file["segments/0/checksums"]
    remade(sums, "residues", sums["residues"][()], chunks=(1,))


def late(file: h5py.File) -> None:
    """A contiguous dataset of 2^45 bytes that has no place in the file."""
    remade(file["segments/0"], "headers", None, shape=(1 << 45,), dtype="u1")


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout(shape=(28,), dtype="u1")
    layout[:] = h5py.VirtualSource("secret", "x", shape=(28,))
    del file["segments/0/headers"]
    file["segments/0"].create_virtual_dataset("headers", layout)


def external(file: h5py.File) -> None:
    """The names of the subjects are the bytes of another file."""
    n = len(headers(file))
    other = [(str(Path(file.filename).parent / "secret"), 0, n)]
    remade(file["segments/0"], "headers", None, shape=(n,), dtype="u1", external=other)
    sums = np.array([zlib.crc32(SECRET.encode()[:n])], dtype="<u4")
    remade(file["segments/0/checksums"], "headers", sums)


def external_pipe(file: h5py.File) -> None:
    other = [(str(Path(file.filename).parent / "pipe"), 0, 28)]
    remade(file["segments/0"], "headers", None, shape=(28,), dtype="u1", external=other)


def linked(link: Callable[[h5py.File], Any], place: str) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        target = link(file)
        del file[place]
        file[place] = target

    return change


def hard_twice(file: h5py.File) -> None:
    del file["segments/1"]
    file["segments/1"] = file["segments/0"]


def hard_loop(file: h5py.File) -> None:
    del file["segments/1"]
    file["segments/1"] = file["segments"]


def dataset_twice(file: h5py.File) -> None:
    del file["segments/1/headers"]
    file["segments/1/headers"] = file["segments/0/headers"]


def group_for(place: str) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[place]
        file.create_group(place)

    return change


def dataset_for(place: str) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[place]
        file[place] = np.zeros(4, dtype="u1")

    return change


def typed(name: str, kind: str) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        remade(file["segments/0"], name, file[f"segments/0/{name}"][()].astype(kind))

    return change


def shaped(name: str, shape: tuple[int, ...]) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        remade(file["segments/0"], name, file[f"segments/0/{name}"][()].reshape(shape))

    return change


def named_type(file: h5py.File) -> None:
    file["type"] = np.dtype("u1")
    data = headers(file)
    del file["segments/0/headers"]
    file["segments/0"].create_dataset("headers", data=data, dtype=file["type"])


def without(place: str) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[place]

    return change


def attribute(place: str, name: str, value: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[place].attrs[name]
        if value is not None:
            file[place].attrs[name] = value

    return change


def many_attributes(file: h5py.File) -> None:
    for number in range(200):
        file["segments/0"].attrs[f"a{number}"] = number


def many_links(file: h5py.File) -> None:
    for number in range(200):
        file["segments/0"][f"a{number}"] = h5py.SoftLink("/nowhere")


def sources(text: bytes) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        remade(file["segments/0"], "sources", np.frombuffer(text, dtype="u1"))
        sums = [zlib.crc32(text)] if text else []
        remade(file["segments/0/checksums"], "sources", np.array(sums, dtype="<u4"))

    return change


def pipe_link(file: h5py.File) -> h5py.ExternalLink:
    return h5py.ExternalLink(str(Path(file.filename).parent / "pipe"), "/segments/0")


SOURCE = {"path": "x", "sha256": None, "bytes": 1, "records": 1, "residues": 1}

KINDS: dict[str, tuple[Callable[[h5py.File], None], str]] = {
    "chunked": (chunked, "segments/0/headers is not contiguous"),
    "compressed": (compressed, "segments/0/headers is compressed"),
    "bomb": (bomb, "segments/0/headers is compressed"),
    "chunked checksums": (chunked_sums, "checksums/residues is not contiguous"),
    "2^45 bytes that were never written": (late, "segments/0/headers reaches beyond the file"),
    "virtual": (virtual, "segments/0/headers is not contiguous"),
    "external": (external, "segments/0/headers keeps its bytes in another file"),
    "external pipe": (external_pipe, "segments/0/headers keeps its bytes in another file"),
    "soft link": (linked(lambda _: h5py.SoftLink("/segments/1/headers"), "segments/0/headers"), "headers is a link"),
    "soft link to itself": (linked(lambda _: h5py.SoftLink("/segments/0"), "segments/0"), "segments/0 is a link"),
    "external link": (
        linked(lambda _: h5py.ExternalLink("sound.h5", "/segments"), "segments"),
        "/segments is a link",
    ),
    "external link to a pipe": (linked(pipe_link, "segments/0"), "segments/0 is a link"),
    "one segment twice": (hard_twice, "is used twice"),
    "a circle": (hard_loop, "is used twice"),
    "one dataset twice": (dataset_twice, "is used twice"),
    "group for a dataset": (group_for("segments/0/lengths"), "segments/0/lengths is no dataset"),
    "group for checksums": (group_for("segments/0/checksums/order"), "checksums/order is no dataset"),
    "dataset for a group": (dataset_for("segments/0"), "segments/0 is no group"),
    "dataset for the checksums": (dataset_for("segments/0/checksums"), "checksums is no group"),
    "dataset for the segments": (dataset_for("segments"), "segments is no group"),
    "no segments": (without("segments"), "/segments is missing"),
    "no first segment": (without("segments/0"), "/segments/0 is missing"),
    "empty segments": (group_for("segments"), "no segments found"),
    "no dataset": (without("segments/0/order"), "/segments/0/order is missing"),
    "no checksums": (without("segments/0/checksums"), "/segments/0/checksums is missing"),
    "wide numbers": (typed("lengths", "<i8"), "lengths has an unexpected type or shape"),
    "big-endian numbers": (typed("order", ">i8"), "order has an unexpected type or shape"),
    "floating point": (typed("header_offsets", "<f8"), "header_offsets has an unexpected type or shape"),
    "texts": (typed("headers", "S1"), "headers has an unexpected type or shape"),
    "named type": (named_type, "shared with another object"),
    "flat residues": (shaped("residues", (-1,)), "residues has an unexpected type or shape"),
    "square lengths": (shaped("lengths", (3, 1)), "lengths has an unexpected type or shape"),
    "flat offsets of three dimensions": (shaped("order", (3, 1, 1)), "order has an unexpected type or shape"),
    "scalar": (linked(lambda _: np.uint8(3), "segments/0/headers"), "headers has an unexpected type or shape"),
    "other format": (attribute("/", "format", np.bytes_(b"x")), "attribute format is 'x'"),
    "no version": (attribute("/", "format_version", None), "format_version is None"),
    "version as text": (attribute("/", "format_version", "two"), "format_version is"),
    "version 0": (attribute("/", "format_version", 0), "format_version is 0"),
    "version 1": (attribute("/", "format_version", 1), "format_version is 1"),
    "no mask": (attribute("/", "mask", None), "mask is None"),
    "other mask": (attribute("/", "mask", np.bytes_(b"upper")), "mask is 'upper'"),
    "tantan without its datasets": (attribute("/", "mask", np.bytes_(b"tantan")), "tantan_offsets is missing"),
    "other letters": (attribute("/", "letters", np.bytes_(b"ACGT")), "letters is 'ACGT'"),
    "no lanes": (attribute("/", "lanes", None), "lanes is None"),
    "array of lanes": (attribute("/", "lanes", np.full(100, 64)), "lanes is None"),
    "other number of subjects": (attribute("/", "n_subjects", 7), "attribute n_subjects is 7"),
    "other number of residues": (attribute("segments/1", "n_residues", -1), "attribute n_residues is -1"),
    "no longest": (attribute("segments/1", "longest", None), "attribute longest is None"),
    "many attributes": (many_attributes, "attributes, expected at most 64"),
    "many links": (many_links, "expected at most 64"),
}

SOURCES = {
    "nothing": b"",
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "a number": b"7",
    "an object": json.dumps(SOURCE).encode(),
    "a list of lists": b"[[]]",
    "without a path": json.dumps([{**SOURCE, "path": None}]).encode(),
    "negative": json.dumps([{**SOURCE, "bytes": -1}]).encode(),
    "infinite": json.dumps([{**SOURCE, "bytes": float("inf")}]).encode(),
    "truth": json.dumps([{**SOURCE, "records": True}]).encode(),
    "nested": b"[" * 100_000 + b"]" * 100_000,
    "a long number": b"[" + b"9" * 10_000 + b"]",
}


def hostile(folder: Path, path: Path, change: Callable[[h5py.File], None]) -> Path:
    """Change a copy of a sound database with h5py and seal it again."""
    path.write_bytes((folder / "sound.h5").read_bytes())
    for name in ("secret", "pipe", "sound.h5"):
        (path.parent / name).symlink_to(folder / name)
    # virtual datasets came with HDF5 1.10
    with h5py.File(path, "r+", libver=("v108", "v110") if change is virtual else LIBVER) as file:
        change(file)
    seal(path, 2)
    return path


def refused(path: Path, words: str, folder: Path) -> None:
    """Check that a database is refused wherever it is read."""
    before = path.read_bytes()
    calls = (
        Database.open,
        verify_database,
        lambda given: append_database(given, folder / "in.fasta", on_duplicate="keep"),
    )
    for call in calls:
        with pytest.raises(DatabaseError) as caught:
            call(path)
        assert caught.value.exit_code == 2 and words in str(caught.value), caught.value
        assert str(caught.value).startswith(f"{path}: ")
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_refused(folder: Path, tmp_path: Path, kind: str) -> None:
    change, words = KINDS[kind]
    refused(hostile(folder, tmp_path / "hostile.h5", change), words, folder)


@pytest.mark.parametrize("kind", SOURCES)
def test_sources(folder: Path, tmp_path: Path, kind: str) -> None:
    path = hostile(folder, tmp_path / "hostile.h5", sources(SOURCES[kind]))
    with Database.open(path) as database:
        for call in (database.sources, database.info):
            with pytest.raises(DatabaseDamageError, match=r"segments/0: sources are no"):
                call()
    with pytest.raises(DatabaseDamageError, match=r"segments/0: sources are no"):
        verify_database(path)


COMMANDS = {
    "search": ("search", "{folder}/in.fasta", "{path}"),
    "info": ("db", "info", "{path}"),
    "verify": ("db", "verify", "{path}"),
    "fetch": ("db", "fetch", "{path}", "a"),
    "append": ("db", "append", "{path}", "{folder}/in.fasta", "--on-duplicate", "keep"),
}


QUICK = ("external", "external link to a pipe", "2^45 bytes that were never written")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", sample(KINDS, lambda kind: kind in QUICK))
def test_commands(folder: Path, tmp_path: Path, command: str, kind: str) -> None:
    change, words = KINDS[kind]
    path = hostile(folder, tmp_path / "hostile.h5", change)
    words_of = [word.format(folder=folder, path=path) for word in COMMANDS[command]]
    done = command_line.run(*words_of)
    command_line.fails(done, 2, words)
    assert SECRET[:10] not in done.stderr


def test_a_pipe_is_no_database(folder: Path) -> None:
    for call in (Database.open, verify_database):
        with pytest.raises(DatabaseError, match="is a pipe or a device"):
            call(folder / "pipe")


def test_a_file_of_holes(folder: Path, tmp_path: Path) -> None:
    """A dataset of 2^40 bytes inside a file of that length which takes some kilobytes of the disk."""
    path = tmp_path / "holes.h5"
    path.write_bytes((folder / "sound.h5").read_bytes())
    size = 1 << 40
    with h5py.File(path, "r+", libver=LIBVER) as file:
        del file["segments/0/headers"]
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((size,))
        h5py.h5d.create(file["segments/0"].id, b"headers", h5py.h5t.STD_U8LE, space, plist)
    with path.open("r+b") as file_:
        file_.write(UserBlock(2, path.stat().st_size - USER_BLOCK, "0" * 64).pack())
    if path.stat().st_size < size or path.stat().st_blocks * 512 > size // 2:
        pytest.skip("no holes in files here")
    for call in (
        Database.open,
        verify_database,
        lambda given: append_database(given, folder / "in.fasta", on_duplicate="keep"),
    ):
        with pytest.raises(DatabaseDamageError, match="bytes were ever written"):
            call(path)


@pytest.mark.parametrize("bound", ["v110", "earliest"])
def test_written_by_another_hand(folder: Path, tmp_path: Path, bound: str) -> None:
    """The same content in other structures of HDF5 is read or refused, never misread."""
    path = tmp_path / "other.h5"
    with (
        h5py.File(folder / "sound.h5") as old,
        h5py.File(path, "w", libver=(bound, "v110"), userblock_size=USER_BLOCK) as new,
    ):
        new.attrs.update(old.attrs)
        old.copy("segments", new)
    seal(path, 2)
    if bound == "earliest":
        refused(path, "superblock", folder)
    else:
        with Database.open(path) as database, Database.open(folder / "sound.h5") as sound:
            assert [database.header(place) for place in range(6)] == [sound.header(place) for place in range(6)]


def test_checksum() -> None:
    """The values that the hash's author gives for it."""
    assert checksum(b"") == 0xDEADBEEF
    assert checksum(b"Four score and seven years ago") == 0x17770551


def heads(raw: bytes) -> list[tuple[int, int]]:
    """Find all metadata with signatures: where they begin, and how many bytes they may have."""
    names = (b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTLF", b"BTIN")
    return sorted((at, 300) for name in names for at in range(len(raw)) if raw.startswith(name, at))


@pytest.mark.parametrize("seed", sample(range(500), lambda seed: seed < 2))
def test_damaged_metadata(folder: Path, tmp_path: Path, seed: int) -> None:
    """Metadata damaged with the user block, and where it can be their own checksums, sealed again."""
    sound = (folder / "sound.h5").read_bytes()
    places = heads(sound)
    pick = np.random.default_rng(seed)
    path = tmp_path / "damaged.h5"
    for _ in range(10):
        raw = bytearray(sound)
        begin, length = places[int(pick.integers(len(places)))]
        values = (0, 1, 0x7F, 0x80, 0xFF, int(pick.integers(256)))
        for _ in range(int(pick.integers(1, 4))):
            raw[min(begin + int(pick.integers(length)), len(raw) - 1)] = values[int(pick.integers(len(values)))]
        resum(raw, sound)
        path.write_bytes(raw)
        seal(path, 2)
        for call in (Database.open, verify_database):
            try:
                call(path)
            except DatabaseError as error:
                assert error.exit_code == 2, error


def resum(raw: bytearray, sound: bytes) -> None:
    """Make the checksums of object headers right again where their lengths still are."""
    for at in range(len(sound)):
        if sound.startswith(b"OHDR", at):
            flags = sound[at + 5]
            start = at + 6 + (16 if flags & 32 else 0) + (4 if flags & 16 else 0)
            width = 1 << (flags & 3)
            end = start + width + int.from_bytes(sound[start : start + width], "little")
            struct.pack_into("<I", raw, end, checksum(bytes(raw[at:end])))
