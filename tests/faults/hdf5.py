"""Database files: damaged anywhere, and written by a wrong writer who got every checksum right."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from faults import contents
from faults.data import SEARCH, build_samples, succeed, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, check_left, check_refusal, refused, succeeded, told_of
from faults.running import Done, command
from support.db_helpers import Bytes
from swsearch.db.file_contents import read_contents
from swsearch.db.format import USER_BLOCK

COMMANDS: dict[str, list[object]] = {
    "search": ["search", "queries.fasta", "db.h5", *SEARCH],
    "info": ["db", "info", "db.h5", "--json"],
    "verify": ["db", "verify", "db.h5", "--quiet"],
    "fetch": ["db", "fetch", "db.h5", "s1_3", "s1_65"],
    "append": ["db", "append", "db.h5", "more.fasta", "--quiet", "--on-duplicate", "keep"],
}


def metadata(raw: bytes | bytearray) -> list[int]:
    """Return all places after the user block that are no array's, and no piece's of the contents."""
    found, free = read_contents(Bytes(raw)), np.ones(len(raw), dtype=bool)
    free[:USER_BLOCK] = False
    for each in found.pieces:
        free[each.at : each.at + each.n_bytes] = False
    for start, stop in (each for segment in found.segments for each in segment.ranges()):
        free[start:stop] = False
    return [int(at) for at in np.flatnonzero(free)]


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
    """Damage HDF5's own metadata, of which swsearch reads nothing."""
    raw = bytearray(path.read_bytes())
    scatter(generator, raw, metadata(raw))
    path.write_bytes(raw)
    return "damaged metadata"


def retold(generator: random.Random, path: Path) -> str:
    """Change what the contents say, with right checksums."""
    raw = bytearray(path.read_bytes())
    contents.retold(generator, raw)
    path.write_bytes(raw)
    return "contents retold, sealed"


def rewritten(generator: random.Random, path: Path) -> str:
    """Write other values into an array, with right checksums all the way up."""
    raw = bytearray(path.read_bytes())
    name = contents.rewritten(generator, raw)
    path.write_bytes(raw)
    return f"{name} rewritten, sealed"


READ_IN_PART = (
    *(f"{name} rewritten" for name in ("headers", "header_offsets", "order")),
    *(f"{mask}_{part} rewritten" for mask in ("mask", "tantan") for part in ("offsets", "starts", "ends")),
    "retold",
)
"""Changes that only affect names of subjects or masked residues, where any value is as valid as another. A command
reads only the arrays it needs. It misses errors in others, which `verify` finds. So it is with other contents."""

WAYS: list[Callable[[random.Random, Path], str]] = [flipped, misled, rewritten, retold]


class Hdf5(Kind):
    """Each command gives what it gave before, or ends with 2 and the place; a sound database is the same to all."""

    name = "hdf5"
    what = "databases, damaged, or rewritten with right checksums, to search, db info, verify, fetch and append"
    counts = (4, 60, 5_000)

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
        before = {each.name for each in folder.iterdir()}
        ended = {}
        for name, words in COMMANDS.items():
            ordinary = self._ordinary(base)[name]
            ended[name] = done = command(*words, cwd=folder)
            with told_of(f"{base}, {what}: {name}"):
                check_end(done, ordinary.peak)
                check_left(folder, *before)
                self._judge(name, done, ordinary, ended.get("verify"))
        # HDF5's metadata are looked at last, and nothing but verify and append looks at them
        sound = ended["verify"].code == 0 or "HDF5" in ended["verify"].err
        with told_of(f"{base}, {what}"):
            if any(word in what for word in ("residues rewritten", "mask_offsets rewritten")):
                del ended["fetch"]  # it reads letters and masks of its entries only; with the wrong ones all fits
            self._after(what, ended, self._ordinary(base), sound, folder)
        return succeeded() if sound else refused()

    def _judge(self, name: str, done: Done, ordinary: Done, verify: Done | None) -> None:
        if done.code == 0:
            return
        # a database that has what HDF5 says otherwise is another one, and sound to all but verify
        missing = name == "fetch" and done.code == 1 and verify is not None
        missing = missing and (verify.code == 0 or "of HDF5" in verify.err)
        check_refusal(done, [1] if missing else [2], "db.h5")

    def _after(self, what: str, ended: dict[str, Done], ordinary: dict[str, Done], sound: bool, folder: Path) -> None:
        """Judge what succeeded: as before, or the database is another one that is sound."""
        for name, done in ended.items():
            if name in ("verify", "append") or done.code:
                continue
            if sound and "sealed" in what and name != "info":
                continue
            if (name != "info" or "retold" in what) and any(word in what for word in READ_IN_PART):
                continue
            if self._shown(name, done) != self._shown(name, ordinary[name]) and not (sound and "sealed" in what):
                raise Wrong(f"{name}: other results than before, though verify says: {ended['verify'].err.strip()}")
        refusing = [name for name, done in ended.items() if done.code == 2 and name not in ("verify", "append")]
        if sound and refusing:
            raise Wrong(f"verify finds nothing, {refusing[0]} says: {ended[refusing[0]].err.strip()}")
        if ended["append"].code != ended["verify"].code and (
            sound or command(*COMMANDS["verify"], cwd=folder).code == 0
        ):
            raise Wrong(f"append ended with {ended['append'].code}, verify says: {ended['verify'].err.strip()}")
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
        from swsearch import extension

        words = COMMANDS["search"]
        outputs = {"reference": command(*words, "--engine", "reference", cwd=folder, limit=60).out}
        for instructions in extension.instruction_sets():

            def choose(instructions: str = instructions) -> None:
                import os

                os.environ["SWSEARCH_SIMD"] = instructions

            outputs[instructions] = command(*words, cwd=folder, before=choose).out
        if len(set(outputs.values())) > 1:
            raise Wrong(f"instruction sets differ on a sound database: {sorted(outputs)}")
