"""Databases that are made to do harm: each ends with exit code 2 and the place, and nothing is read but the file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from support.db_helpers import HBA, HBB, Bytes, all_of, change_contents, entry_of, piece_of, rewrite, seal
from swsearch.alphabet import DNA
from swsearch.db import Database, append_database, build_database, verify, verify_database
from swsearch.db.file_contents import MAX_CONTENTS_BYTES, BytesPlace, UserBlock, read_contents
from swsearch.db.format import LIBVER, USER_BLOCK
from swsearch.errors import DatabaseDamageError, DatabaseError, MemoryLimitError

Piece = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "in.fasta").write_text(f">a alpha\n{HBA[:40]}\n>b beta\n{HBB.lower()[:20]}{HBA[:9]}\n>empty\n")
    build_database(folder / "in.fasta", folder / "sound.h5", mask="lower")
    append_database(folder / "sound.h5", folder / "in.fasta", on_duplicate="keep")
    return folder


def copied(folder: Path, path: Path) -> Path:
    """Copy the sound database."""
    path.write_bytes((folder / "sound.h5").read_bytes())
    return path


def root(**values: Any) -> Callable[[Piece], None]:
    """Change what is said of the database; None removes it."""
    return lambda piece: [piece.pop(name) if value is None else piece.update({name: value})
                          for name, value in values.items()] and None  # fmt: skip


def segment(**values: Any) -> Callable[[Piece], Any]:
    return lambda piece: piece["segments"][1]["attributes"].update(values)


def array(name: str, place: int, value: Any) -> Callable[[Piece], Any]:
    """Change the shape, the first byte or the hash of an array of the first segment."""
    return lambda piece: piece["segments"][0]["arrays"][name].__setitem__(place, value)


def renamed(old: str, new: str) -> Callable[[Piece], Any]:
    return lambda piece: piece["segments"][0]["arrays"].update({new: piece["segments"][0]["arrays"].pop(old)})


def at_that_of(name: str, other: str, more: int) -> Callable[[Piece], Any]:
    """Let an array begin in another one."""

    def change(piece: Piece) -> None:
        arrays = piece["segments"][0]["arrays"]
        arrays[name][1] = arrays[other][1] + more

    return change


def sums_inside(piece: Piece) -> None:
    piece["segments"][0]["checksums"] = piece["segments"][0]["arrays"]["residues"][1] + 8


FILE = {"file": "x.h5", "identity": "0" * 64, "n_subjects": 3, "n_residues": 69}
DEEP = b"[" * 100_000

KINDS: dict[str, tuple[Callable[[Piece], Any], str]] = {
    "nothing": (lambda _: b"", "the contents are not JSON"),
    "no JSON": (lambda _: b'{"attributes": 5', "the contents are not JSON"),
    "deep": (lambda _: DEEP, "the contents have too many parts"),
    "deep, with room": (lambda _: DEEP.replace(b"[", b"[        "), "the contents are not JSON"),
    "a long number": (lambda _: b"9" * 10_000, "the contents are not JSON"),
    "no segments": (root(segments=None), "no segments found"),
    "other files": (lambda piece: piece["segments"].append(FILE), "a database file lists other files"),
    "no arrays": (lambda piece: piece["segments"][1].pop("arrays"), "/segments/1 has no arrays"),
    "no checksums": (lambda piece: piece["segments"][0].pop("checksums"), "/segments/0/checksums is None"),
    "one segment twice": (lambda piece: piece["segments"].append(piece["segments"][0]), "are in two arrays"),
    "no array": (lambda piece: piece["segments"][0]["arrays"].pop("order"), "/segments/0/order is missing"),
    "an array of another mask": (renamed("order", "tantan_ends"), "/segments/0/order is missing"),
    "one array more": (lambda piece: piece["segments"][0]["arrays"].update(taxa=[[0], 0, "0" * 64]),
                       "/segments/0/taxa is not expected"),
    "an unknown array": (renamed("residues", "a\n\x1b[31m"), r"/segments/0/a\n\x1b[31m is not expected"),
    "no hash": (array("order", 2, "0" * 63), "/segments/0/order has no SHA-256"),
    "a text for a place": (array("order", 1, "2048"), "/segments/0/order is '2048', expected a number"),
    "truth for a place": (array("order", 1, True), "/segments/0/order is True, expected a number"),
    "no shape": (array("order", 0, []), "/segments/0/order: wrong shape"),
    "flat residues": (array("residues", 0, [40 * 64]), "/segments/0/residues: wrong shape"),
    "beyond the end": (array("headers", 1, 1 << 40), "an array reaches beyond the file"),
    "checksums beyond the end": (lambda piece: piece["segments"][0].update(checksums=1 << 40), "beyond the file"),
    "no bytes in a place": (array("headers", 0, [0]), "headers has a place and no bytes"),
    "one place twice": (at_that_of("order", "lengths", 0), "are in two arrays"),
    "checksums in an array": (sums_inside, "are in two arrays"),
    "fewer lengths": (array("lengths", 0, [2]), "/segments/0/lengths does not fit the number of subjects"),
    "other format": (root(format="x"), "the contents are of something else"),
    "other mask": (root(mask="upper"), "mask is 'upper'"),
    "tantan without its arrays": (root(mask="tantan"), "tantan_ends is missing"),
    "taxids without arrays": (root(taxids=1), "/segments/0/merged_into is missing"),
    "DNA without arrays": (root(genetic_code=1, dna_letters=DNA.letters, mask="none"), "block_offsets is not exp"),
    "DNA of no code": (root(genetic_code=7, dna_letters=DNA.letters, mask="none"), "genetic_code is 7"),
    "other letters": (root(letters="ACGT"), "attribute letters is 'ACGT'"),
    "a list for a number": (segment(longest=[64]), "attribute 'longest' is not a number or a line of text"),
    "control characters": (segment(software="\x1b[31m"), "attribute 'software' is not a number or a line of text"),
    "a long text": (segment(software="x" * 1000), "attribute 'software' is not a number or a line of text"),
    "other number of subjects": (segment(n_subjects=7), "/segments/1/header_offsets does not fit"),
    "no subjects": (segment(n_subjects=0), "/segments/1/header_offsets does not fit"),
    "other number of residues": (segment(n_residues=7), "attribute n_residues is 7, expected 69"),
}  # fmt: skip


def hostile(folder: Path, path: Path, change: Callable[[Piece], Any]) -> Path:
    change_contents(copied(folder, path), change)
    return path


def calls(folder: Path) -> list[Callable[[Path], object]]:
    """Return what reads a database."""
    append = partial(append_database, inputs=folder / "in.fasta", on_duplicate="keep")
    return [Database.open, verify_database, append]


def refused(path: Path, words: str, folder: Path) -> None:
    """Check that a database is refused wherever it is read."""
    before = path.read_bytes()
    for call in calls(folder):
        with pytest.raises(DatabaseError, match=re.escape(words)) as caught:
            call(path)
        assert caught.value.exit_code == 2 and str(caught.value).startswith(f"{path}: ")
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_refused(folder: Path, tmp_path: Path, kind: str) -> None:
    change, words = KINDS[kind]
    refused(hostile(folder, tmp_path / "hostile.h5", change), words, folder)


def test_the_largest_contents_are_read(folder: Path, tmp_path: Path) -> None:
    raw, path = (folder / "sound.h5").read_bytes(), tmp_path / "large.h5"
    text = json.dumps(piece_of(raw)).encode()
    for size, words in ((MAX_CONTENTS_BYTES, ""), (MAX_CONTENTS_BYTES + 1, "not where they can be")):
        hostile(folder, path, lambda _, size=size: text.ljust(size))  # type: ignore[misc]
        if words:
            refused(path, words, folder)
        else:
            Database.open(path).close()


def chains(raw: bytearray) -> Iterator[tuple[str, Any, str]]:
    """Yield what a newest piece may say of the piece before it, and the words of the refusal."""
    old = read_contents(Bytes(raw)).pieces
    last = [old[1].at, old[1].n_bytes, old[1].sha256]
    yield "a list", last[:2], "before is not a place"
    yield "no hash", [*last[:2], "x"], "before is not a place"
    yield "negative", [-1, *last[1:]], "before is -1, expected a number"
    yield "other hash", [*last[:2], "0" * 64], "checksum differs"
    yield "in the user block", [0, 512, "0" * 64], "not where they can be"
    yield "forward", [len(raw), *last[1:]], "not where they can be"
    yield "no bytes", [last[0], 0, BytesPlace.from_bytes(0, b"").sha256], "the contents are not JSON"
    array = entry_of(raw, "residues")
    yield (
        "an array",
        [array.at, 64, BytesPlace.from_bytes(0, bytes(raw[array.at : array.at + 64])).sha256],
        "are not JSON",
    )
    yield "segments again", last, "are in two arrays"


def test_a_chain_that_leads_elsewhere(folder: Path, tmp_path: Path) -> None:
    sound = bytearray((folder / "sound.h5").read_bytes())
    for kind, before, words in chains(sound):
        path = hostile(folder, tmp_path / f"{kind}.h5", root(before=before))
        refused(path, words, folder)
    raw = bytearray(sound)
    piece = piece_of(raw)
    first = seal(raw, piece | {"segments": piece["segments"][:1], "mask": "none"})
    seal(raw, piece | {"segments": piece["segments"][1:], "before": [first.at, first.n_bytes, first.sha256]})
    (tmp_path / "kinds.h5").write_bytes(raw)
    refused(tmp_path / "kinds.h5", "its segments are of different kinds", folder)


BLOCKS: dict[str, tuple[str, str]] = {
    "elsewhere": ("contents {after} {n} {sha256}", "checksum differs"),
    "endless": ("contents {at} 1000000000 {sha256}", "not where they can be"),
    "other hash": ("contents {at} {n} " + "0" * 64, "checksum differs"),
    "no hash": ("contents {at} {n}", "user block (bytes 0 to 512)"),
    "negative": ("contents -1 {n} {sha256}", "user block (bytes 0 to 512)"),
    "changes without a hash": ("changes 5 6 x", "user block (bytes 0 to 512)"),
    "one more line": ("more 5", "user block (bytes 0 to 512)"),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_user_block_that_leads_elsewhere(folder: Path, tmp_path: Path, kind: str) -> None:
    raw, (line, words) = (folder / "sound.h5").read_bytes(), BLOCKS[kind]
    place = read_contents(Bytes(raw)).pieces[-1]
    said = {"at": place.at, "n": place.n_bytes, "after": place.at + 1, "more": place.n_bytes + 1, "size": len(raw)}
    line = line.format(**said, sha256=place.sha256)
    lines = {each.split(" ")[0]: each for each in raw[:USER_BLOCK].rstrip(b"\0").decode().splitlines()}
    lines[line.split(" ", maxsplit=1)[0]] = line
    head = "\n".join([*lines.values(), ""]).encode().ljust(USER_BLOCK, b"\0")
    (tmp_path / "hostile.h5").write_bytes(head + raw[USER_BLOCK:])
    refused(tmp_path / "hostile.h5", words, folder)


SOURCE = {"path": "x", "sha256": None, "bytes": 1, "records": 1, "residues": 1}

SOURCES = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "without a path": json.dumps([{**SOURCE, "path": None}]).encode(),
    "negative": json.dumps([{**SOURCE, "bytes": -1}]).encode(),
    "a long number": b"[" + b"9" * 100 + b"]",
}


@pytest.mark.parametrize("kind", SOURCES)
def test_sources(folder: Path, tmp_path: Path, kind: str) -> None:
    raw = bytearray((folder / "sound.h5").read_bytes())
    rewrite(raw, "sources", lambda values: np.frombuffer(SOURCES[kind].ljust(len(values)), dtype="u1"))
    (tmp_path / "hostile.h5").write_bytes(raw)
    for call in (Database.sources, Database.info, lambda database: verify_database(database.name)):
        refusal = pytest.raises(DatabaseDamageError, match=r"segments/0: sources are no")
        with refusal, Database.open(tmp_path / "hostile.h5") as database:
            call(database)


def test_a_file_of_holes(folder: Path, tmp_path: Path) -> None:
    """An array of 2^40 bytes inside a file of that length which takes some kilobytes of the disk."""
    path, size = copied(folder, tmp_path / "holes.h5"), 1 << 40
    piece = piece_of(path.read_bytes())
    piece["segments"][0]["arrays"]["headers"][:2] = [[size >> 1], path.stat().st_size]
    piece["segments"][0]["checksums"] = size - (1 << 30)
    text = json.dumps(piece).encode()
    with path.open("r+b") as file:
        file.truncate(size)
        file.seek(size)
        file.write(text)
        file.seek(0)
        file.write(UserBlock(size + len(text), BytesPlace.from_bytes(size, text)).pack())
    if path.stat().st_blocks * 512 > size // 2:
        pytest.skip("no holes in files here")
    for call in calls(folder):
        with pytest.raises(DatabaseDamageError, match="bytes were ever written"):
            call(path)


def replaced(place: str, made: Callable[[h5py.File], Any]) -> Callable[[h5py.File], None]:
    """Put something else in the place of a group or a dataset: a link, a dataset by its options, or a group."""

    def change(file: h5py.File) -> None:
        new = made(file)
        del file[place]
        if isinstance(new, dict):
            file.create_dataset(place, **({"dtype": "u1"} | new))
        else:
            file[place] = new

    return change


def pipe(file: h5py.File) -> str:
    return str(Path(file.filename).parent / "pipe")


def of_headers(made: Callable[[h5py.File], Any]) -> tuple[Callable[[h5py.File], None], str]:
    return replaced("segments/0/headers", made), "/segments/0/headers of HDF5 is not as"


OTHERWISE: dict[str, tuple[Callable[[h5py.File], Any], str]] = {
    "a gigabyte of zeros in some kilobytes": of_headers(
        lambda _: {"shape": (1 << 30,), "chunks": (1 << 26,), "compression": "gzip"}
    ),
    "external": of_headers(lambda file: {"shape": (28,), "external": [(pipe(file), 0, 28)]}),
    "soft link": of_headers(lambda _: h5py.SoftLink("/segments/1/headers")),
    "external link to a pipe": (
        replaced("segments/0", lambda file: h5py.ExternalLink(pipe(file), "/segments/0")), "segments of HDF5",
    ),
    "one segment twice": (replaced("segments/1", lambda file: file["segments/0"]), "/segments/1/headers of HDF5"),
    "no checksums": (lambda file: file.pop("segments/0/checksums"), "/segments/0/checksums of HDF5"),
    "no segments": (lambda file: file.pop("segments"), "HDF5 cannot read it (KeyError"),
    "no contents": (lambda file: file.pop("contents"), "/contents of HDF5 is not where"),
    "one more attribute": (lambda file: file.attrs.update(more=7), "attributes of HDF5"),
    "other attribute": (lambda file: file["segments/1"].attrs.update(longest=7), "/segments/1: attributes of HDF5"),
}  # fmt: skip


@pytest.mark.parametrize("kind", [*OTHERWISE, "damaged"])
def test_what_hdf5_says_otherwise(folder: Path, tmp_path: Path, kind: str) -> None:
    """HDF5's metadata decide nothing, and may make libhdf5 crash, in its own process; verify looks at them."""
    change, words = OTHERWISE.get(kind, (None, "HDF5 cannot read it"))
    path = copied(folder, tmp_path / "hostile.h5")
    block = UserBlock.parse(path.read_bytes()[:USER_BLOCK])
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(path, "r+", libver=LIBVER) if change else path.open("r+b") as file:
        if change:
            change(file)
        else:
            os.pwrite(file.fileno(), b"\xff" * 32, USER_BLOCK + 12)
    with path.open("r+b") as file:  # HDF5 sees no user block, and may have made the file longer
        file.write(UserBlock(path.stat().st_size, block.contents).pack())
    assert all_of(path) == all_of(folder / "sound.h5")
    before = path.read_bytes()
    for call in calls(folder)[1:]:
        with pytest.raises(DatabaseDamageError, match=re.escape(words)):
            call(path)
    assert path.read_bytes() == before


def test_hdf5_that_takes_long_or_much(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that looks has a limit of time; where memory is limited, lack of it is not called damage."""
    path = copied(folder, tmp_path / "hostile.h5")
    with monkeypatch.context() as patched:
        patched.setattr("swsearch.db.hdf5_view.TIMEOUT_SECONDS", 0.001)
        with pytest.raises(DatabaseDamageError, match=r"HDF5 does not read it within 0\.001 s"):
            verify_database(path)
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), b"\xff" * 32, USER_BLOCK + 12)
    monkeypatch.setattr("swsearch.db.hdf5_view.resource.getrlimit", lambda _: (1 << 28, 1 << 28))
    with pytest.raises(MemoryLimitError, match="h5py could not look at it within 256 MiB"):
        verify_database(path)


def test_hdf5_of_a_file_that_is_gone(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file may take its name while it is verified."""
    path, check = copied(folder, tmp_path / "hostile.h5"), verify.check_bytes
    monkeypatch.setattr(verify, "check_bytes", lambda *given: (path.unlink(), check(*given))[1])
    assert verify_database(path)["segments"] == 2 and not path.exists()


def test_written_by_another_hand(folder: Path, tmp_path: Path) -> None:
    """A copy by another tool has no user block of ours, or one that does not fit."""
    path = tmp_path / "other.h5"
    with h5py.File(folder / "sound.h5") as old, h5py.File(path, "w", userblock_size=USER_BLOCK) as new:
        new.attrs.update(old.attrs)
        old.copy("segments", new)
    refused(path, "is HDF5 but not a swsearch database", folder)
    path.write_bytes((folder / "sound.h5").read_bytes()[:USER_BLOCK] + path.read_bytes()[USER_BLOCK:])
    refused(path, "damaged: truncated", folder)
