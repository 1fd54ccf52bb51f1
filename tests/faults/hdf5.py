"""Database files: damaged anywhere, and written by a wrong writer who got every checksum right."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from faults.data import SEARCH, build_samples, succeed, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, check_left, check_refusal, refused, succeeded
from faults.lookup3 import sealed_metadata
from faults.rebuilt import rebuild
from faults.running import Done, command
from swsearch.db.format import USER_BLOCK, checksums, read_user_block
from swsearch.db.writing import seal

COMMANDS: dict[str, list[object]] = {
    "search": ["search", "queries.fasta", "db.h5", *SEARCH],
    "info": ["db", "info", "db.h5", "--json"],
    "verify": ["db", "verify", "db.h5", "--quiet"],
    "fetch": ["db", "fetch", "db.h5", "s1_3", "s1_65"],
    "append": ["db", "append", "db.h5", "more.fasta", "--quiet", "--on-duplicate", "keep"],
}

Place = tuple[int, int]


def places(path: Path) -> dict[str, Place]:
    """Return where in the file each dataset's bytes stand: from and to."""
    found: dict[str, Place] = {}

    def note(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and item.size:
            at = item.id.get_offset()
            found[name] = (at, at + item.size * item.dtype.itemsize)

    with h5py.File(path) as file:
        file.visititems(note)
    return found


def metadata(size: int, known: dict[str, Place]) -> list[int]:
    """Return all places after the user block that are no dataset's."""
    of_data = np.zeros(size, dtype=bool)
    of_data[:USER_BLOCK] = True
    for start, stop in known.values():
        of_data[start:stop] = True
    return np.flatnonzero(~of_data).tolist()


def scatter(generator: random.Random, raw: bytearray, where: list[int]) -> None:
    """Change a few of the bytes at some places."""
    for _ in range(generator.choice([1, 1, 2, 4, 16])):
        at = generator.choice(where)
        kind = generator.randrange(4)
        if kind == 0:
            raw[at] ^= 1 << generator.randrange(8)
        elif kind == 1:
            raw[at] = generator.choice([0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)])
        else:
            for near in range(at, min(at + generator.choice([2, 4, 8]), len(raw))):
                raw[near] = generator.choice([0, 0xFF, generator.randrange(256)])


def flipped(generator: random.Random, path: Path) -> str:
    """Damage any bytes."""
    raw = bytearray(path.read_bytes())
    kind = generator.randrange(8)
    if kind < 4:
        scatter(generator, raw, list(range(len(raw))))
    elif kind == 4:
        del raw[generator.randrange(len(raw)) :]
    elif kind == 5:
        raw += generator.randbytes(generator.choice([1, 512, 5000]))
    else:
        at, length = generator.randrange(len(raw)), generator.choice([16, 512, 4096])
        source = generator.randrange(len(raw))
        raw[at : at + length] = bytes(length) if kind == 6 else raw[source : source + length]
    path.write_bytes(raw)
    return "damaged bytes"


def misled(generator: random.Random, path: Path) -> str:
    """Damage HDF5's own metadata, whose checksums are made right again half the time, and the user block's always."""
    raw = bytearray(path.read_bytes())
    scatter(generator, raw, metadata(len(raw), places(path)))
    if generator.random() < 0.5:
        raw = sealed_metadata(raw)
    path.write_bytes(raw)
    seal(path, 1)
    return "damaged metadata, sealed"


def number(generator: random.Random, before: int, bits: int) -> int:
    """Choose another number."""
    most = 2 ** (bits - 1) - 1
    near = [before + 1, before - 1, before + 8, before - 64, -before, 0, 1, -1]
    return generator.choice([*near, most, -most - 1, 2**31, generator.randint(-most, most), before << 3])


def rewritten(generator: random.Random, path: Path) -> str:
    """Write other content, and make all checksums right again."""
    known = {name: place for name, place in places(path).items() if "checksums" not in name}
    name = generator.choice(sorted(known))
    start, stop = known[name]
    with h5py.File(path) as file:
        kind = file[name].dtype
    raw = bytearray(path.read_bytes())
    values = np.frombuffer(bytes(raw[start:stop]), dtype=kind).copy()
    how = generator.randrange(6)
    if how < 3:
        for _ in range(generator.choice([1, 1, 2, 8])):
            at = generator.randrange(len(values))
            if kind.itemsize == 1:
                values[at] = generator.choice([0, 26, 27, 31, 32, 33, 64, 127, 128, 255, generator.randrange(256)])
            else:
                wanted = number(generator, int(values[at]), kind.itemsize * 8)
                values[at] = (
                    np.array(wanted & (1 << kind.itemsize * 8) - 1, dtype="u8").astype(f"u{kind.itemsize}").view(kind)
                )
    elif how == 3:
        values += np.array(generator.choice([1, 2, 255]), dtype=kind)
    elif how == 4:
        values = np.roll(values, generator.choice([1, -1, 64]))
    else:
        values = values[::-1].copy()
    raw[start:stop] = values.tobytes()
    sums = places(path)[name.replace("/", "/", 1).rsplit("/", 1)[0] + "/checksums/" + name.rsplit("/", 1)[1]]
    raw[sums[0] : sums[1]] = np.array(checksums(values.tobytes()), dtype="<u4").tobytes()
    path.write_bytes(raw)
    seal(path, 1 if "tantan" not in path.name else 2)
    return f"{name} rewritten, sealed"


FOREIGN = ("chunked", "without bytes", "virtual", "external", "link", "a group", "never written")
"""What no database of ours holds, whatever its bytes say."""

READ_IN_PART = ("headers rewritten", "order rewritten")
"""What says only how subjects are called, any name as right as another: a command that reads the names of its hits
does not see what is wrong elsewhere, which `verify` finds."""

WAYS: list[Callable[[random.Random, Path], str]] = [flipped, misled, rewritten, rebuild]


class Hdf5(Kind):
    """Each command gives what it gave before, or ends with 2 and the place; a sound database is the same to all."""

    name = "hdf5"
    what = "databases, damaged, or rewritten with right checksums, to search, db info, verify, fetch and append"
    counts = (16, 150, 5_000)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_samples(folder)
        self.bases = build_samples(folder)
        self._known: dict[str, dict[str, Done]] = {}

    def _ordinary(self, base: str) -> dict[str, Done]:
        """Return what the commands do with a database that is whole."""
        if base not in self._known:
            with tempfile.TemporaryDirectory(dir=self.folder) as name:  # others may do the same at the same time
                place = Path(name)
                shutil.copy(self.folder / base, place / "db.h5")
                self._prepare(place)
                self._known[base] = {name: succeed(command(*words, cwd=place)) for name, words in COMMANDS.items()}
        return self._known[base]

    def _prepare(self, folder: Path) -> None:
        for name in ("queries.fasta", "more.fasta"):
            (folder / name).symlink_to(self.folder / name)

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Damage a database and try all commands on it."""
        generator = self.generator(seed)
        base = generator.choice(self.bases)
        way = WAYS[seed % len(WAYS)]
        path = folder / "db.h5"
        shutil.copy(self.folder / base, path)
        self._prepare(folder)
        what = way(generator, path)
        block = read_user_block(path)
        if generator.random() < 0.02 and block is not None:
            seal(path, 3 - block.version)  # of the other version
        before = {each.name for each in folder.iterdir()}
        ended = {}
        for name, words in COMMANDS.items():
            ordinary = self._ordinary(base)[name]
            ended[name] = done = command(*words, cwd=folder)
            try:
                check_end(done, ordinary.peak)
                check_left(folder, *before)
                self._judge(name, done, ordinary, ended.get("verify"))
            except Wrong as wrong:
                raise Wrong(f"{base}, {what}: {name}: {wrong}") from None
        sound = ended["verify"].code == 0
        try:
            if any(word in what for word in ("residues rewritten", "mask_offsets rewritten")):
                del ended["fetch"]  # it reads letters and masks of its entries only; with the wrong ones all fits
            self._after(what, ended, self._ordinary(base), sound, folder)
        except Wrong as wrong:
            raise Wrong(f"{base}, {what}: {wrong}") from None
        if sound and any(word in what for word in FOREIGN):
            raise Wrong(f"{base}, {what}: taken, expected a refusal")
        return succeeded() if sound else refused()

    def _judge(self, name: str, done: Done, ordinary: Done, verify: Done | None) -> None:
        if done.code == 0:
            return
        missing = name == "fetch" and done.code == 1 and verify is not None and verify.code == 0
        check_refusal(done, [1] if missing else [2], "db.h5")

    def _after(self, what: str, ended: dict[str, Done], ordinary: dict[str, Done], sound: bool, folder: Path) -> None:
        """Judge what succeeded: as before, or the database is another one that is sound."""
        for name, done in ended.items():
            if name in ("verify", "append") or done.code:
                continue
            if sound and name != "info" and done.out != ordinary[name].out:
                continue
            if name != "info" and any(word in what for word in READ_IN_PART):
                continue
            if not sound and self._shown(name, done) != self._shown(name, ordinary[name]):
                raise Wrong(f"{name}: other results than before, though verify says: {ended['verify'].err.strip()}")
        refusing = [name for name, done in ended.items() if done.code == 2]
        if sound and refusing:
            raise Wrong(f"verify finds nothing, {refusing[0]} says: {ended[refusing[0]].err.strip()}")
        if not sound and ended["append"].code == 0:
            raise Wrong(f"append went through, though verify says: {ended['verify'].err.strip()}")
        if sound and ended["search"].out != ordinary["search"].out:
            self._compare_engines(folder)

    @staticmethod
    def _shown(name: str, done: Done) -> bytes:
        if name != "info":
            return done.out
        told = json.loads(done.out)
        return json.dumps({key: value for key, value in told.items() if key != "n_bytes"}).encode()

    def _compare_engines(self, folder: Path) -> None:
        """A sound database gives the same scores with every set of instructions, and those of the reference."""
        from swsearch.engines.cpu import extension

        words = COMMANDS["search"]
        outputs = {"reference": command(*words, "--engine", "reference", cwd=folder, limit=60).out}
        for instructions in extension.instruction_sets():

            def choose(instructions: str = instructions) -> None:
                import os

                os.environ["SWSEARCH_SIMD"] = instructions

            outputs[instructions] = command(*words, cwd=folder, before=choose).out
        if len(set(outputs.values())) > 1:
            raise Wrong(f"instruction sets differ on a sound database: {sorted(outputs)}")
