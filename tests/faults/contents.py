"""Databases made to do harm: user block, contents, arrays and manifests are changed, half of them with right sums."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import time
from collections.abc import Callable, MutableSequence
from pathlib import Path
from typing import Any

import numpy as np

from faults.data import N_SUBJECTS, build_samples, succeed, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, check_success, refused, succeeded, told_of
from faults.running import Done, command, copy
from support.db_helpers import Bytes, piece_of, rewrite, seal
from support.taxa import write_subjects, write_taxonomy
from swsearch.db import Database, verify, verify_database, write_manifest
from swsearch.db.file_contents import BytesPlace, UserBlock, read_contents
from swsearch.db.format import ARRAY_TYPES, USER_BLOCK
from swsearch.errors import DatabaseError

MAX_CPU_SECONDS = 1.0
"""Maximum seconds for opening and reading a changed database on a busy machine; an intact one takes a fiftieth."""

Change = Callable[[random.Random, bytearray], object]


def scatter(generator: random.Random, raw: MutableSequence[int], where: range) -> None:
    """Change some bytes at some places."""
    for _ in range(generator.choice([1, 1, 2, 4, 16])):
        at = generator.choice(where)
        raw[at] = generator.choice([raw[at] ^ 1 << generator.randrange(8), 0, 0xFF, generator.randrange(256)])


def place_of(raw: bytearray) -> BytesPlace:
    """Return where the newest piece of the contents of a sound database is."""
    return read_contents(Bytes(raw)).pieces[-1]


def point(raw: bytearray, at: int, n_bytes: int) -> None:
    """Let the user block lead to some bytes, with their right hash."""
    raw[:USER_BLOCK] = UserBlock(len(raw), BytesPlace.from_bytes(at, bytes(raw[at : at + n_bytes]))).pack()


def flipped(generator: random.Random, raw: bytearray) -> None:
    """Change bytes anywhere."""
    scatter(generator, raw, range(len(raw)))


def flipped_in_the_block(generator: random.Random, raw: bytearray) -> None:
    """Change bytes of the user block's text."""
    scatter(generator, raw, range(170))


def flipped_in_the_contents(generator: random.Random, raw: bytearray) -> None:
    """Change characters of the newest piece, mostly sealed."""
    place = place_of(raw)
    for _ in range(generator.choice([1, 1, 2, 4])):
        raw[place.at + generator.randrange(place.n_bytes)] = generator.choice(b'0123456789",:{}[]- ex')
    if generator.random() < 0.8:
        point(raw, place.at, place.n_bytes)


def cut(generator: random.Random, raw: bytearray) -> None:
    """Truncate, lengthen, or overwrite a stretch; half of them sealed."""
    place, at = place_of(raw), generator.randrange(len(raw))
    length, kind = generator.choice([1, 16, 512, 4096]), generator.randrange(4)
    if kind == 0:
        del raw[max(at, USER_BLOCK) :]
    elif kind == 1:
        raw += generator.randbytes(length)
    else:
        source = generator.randrange(len(raw))
        stretch = bytes(length) if kind == 2 else raw[source : source + length]
        raw[at : at + len(stretch)] = stretch
    if generator.random() < 0.5:
        point(raw, place.at, place.n_bytes)


def numbers(generator: random.Random, size: int) -> list[int]:
    """Return places that are near the ends of a file, far away, or anywhere."""
    return [0, 1, 511, 512, size - 1, size, size + 1, 2**31, 10**17, generator.randrange(size)]


def pointed_elsewhere(generator: random.Random, raw: bytearray) -> None:
    """Let the user block lead elsewhere, with the right hash of what is there."""
    place, near = place_of(raw), numbers(generator, len(raw))
    at, n_bytes = generator.choice(near), generator.choice([0, 1, 100, place.n_bytes, 10**8 - 1, 10**9])
    size = generator.choice([*near, len(raw), len(raw), len(raw)])
    changes = generator.choice([None, None, None, BytesPlace.from_bytes(at, bytes(raw[at : at + n_bytes]))])
    contents = generator.choice([place, BytesPlace.from_bytes(at, bytes(raw[at : at + n_bytes]))])
    raw[:USER_BLOCK] = UserBlock(size, contents, changes).pack()


def chained(generator: random.Random, raw: bytearray) -> None:
    """Write the contents as a chain of pieces that leads elsewhere, to itself, forward, or twice to one piece."""
    piece, old = piece_of(raw), [*read_contents(Bytes(raw)).pieces]
    segments = piece["segments"]
    if generator.random() < 0.5:
        generator.shuffle(segments)
    last = generator.randrange(len(segments)) if generator.random() < 0.5 else len(segments) - 1
    before: Any = None
    for number, segment in enumerate(segments):
        if number == last and generator.random() < 0.8:
            n = generator.choice(numbers(generator, len(raw)))
            other = generator.choice(
                [*old, *old, BytesPlace.from_bytes(n, bytes(raw[n : n + 100])), BytesPlace(len(raw), 500, "0" * 64)]
            )
            before = generator.choice([[other.at, other.n_bytes, other.sha256], [0, 0, ""], [], {}, 5, [before], "x"])
            if isinstance(before, list) and len(before) == 3 and generator.random() < 0.3:
                before[generator.randrange(3)] = value(generator, 5)
        place = seal(raw, piece | {"segments": [segment]} | ({} if before is None else {"before": before}))
        before = [place.at, place.n_bytes, place.sha256]
        old.append(place)


def value(generator: random.Random, before: Any) -> Any:
    """Choose another value, often a number."""
    strange = [0, 1, -1, 2**31, 2**62, 2**63, 2**64, 10**400, 1.5, float("nan"), True, None, "1", [], {}, "x" * 1000]
    if type(before) is not int:
        return generator.choice([*strange, "lower", "tantan", "none"])
    near = [before + 1, before - 1, before + 8, before - 64, -before, before * 2, before // 2, before << 20]
    return generator.choice([*near, *near, *strange])


def retold(generator: random.Random, raw: bytearray) -> None:
    """Change what the contents say, sealed: places, shapes, attributes, names, segments."""
    piece = piece_of(raw)
    segment = generator.choice(piece["segments"])
    arrays, said = segment["arrays"], segment["attributes"]
    name, other = generator.choice(list(arrays)), generator.choice(list(arrays))
    kind = generator.randrange(10)
    if kind < 3:
        place = generator.randrange(3)
        shape = arrays[name][0]
        arrays[name][place] = [*shape[:-1], value(generator, shape[-1])] if not place else value(
            generator, arrays[name][place]
        )  # fmt: skip
    elif kind == 3:  # two arrays share bytes
        arrays[name][1] = generator.choice([arrays[other][1], segment["checksums"]]) + generator.choice([0, 0, 1, 8])
    elif kind == 4:
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif kind == 5:
        place = generator.choice([said, piece, segment])
        which = generator.choice([each for each in place if each not in ("arrays", "segments", "attributes")])
        place[which] = value(generator, place[which])
    elif kind == 6:
        place = generator.choice([arrays, segment, said, piece])
        del place[generator.choice(list(place))]
    elif kind == 7:
        every = piece["segments"]
        file = {"file": "x.h5", "identity": "0" * 64, "n_subjects": 1, "n_residues": 1}
        piece["segments"] = generator.choice(
            [[], every * 2, every[::-1], every[1:], {}, None, 5, [every], [file], [*every, file]]
        )
    elif kind == 8:
        arrays[name] = generator.choice([[], {}, None, 5, arrays[name][:2], [*arrays[name], 1], [arrays[name]] * 3])
    else:
        arrays[generator.choice([*ARRAY_TYPES, "more", "\x1b[31m"])] = generator.choice([arrays[name], {}, None, 5])
    seal(raw, piece)


def another_text(generator: random.Random, raw: bytearray) -> None:
    """Put contents that no writer writes: deep, long, dense, cut, no text."""
    piece = piece_of(raw)
    text, n = json.dumps(piece).encode(), generator.choice([10, 1000, 100_000, 1_000_000])
    deep = generator.randrange(1100)
    texts = [
        b"[" * n, b"[        " * (n // 4), b'{"a":       ' * (n // 4), b"9" * n, b'"' + b"x" * n + b'"', b" " * n,
        b"[" + b"{},       " * (n // 4) + b"0]", b"[" + b'"ab",    ' * (n // 4) + b"0]", text[:-1], b"\xff" + text,
        b"[" + text, text + text, text[: generator.randrange(len(text))], b"", text.replace(b":", b":" + b" " * 99),
        text.replace(b"[", b"[" * generator.choice([2, 50])), text + b" " * (4 * n),
        b'{"segments":[' + b'{"arrays":{}},    ' * (n // 8) + b"0]}",
        json.dumps({**piece, "segments": piece["segments"] * (n // 1500)}).encode(),
        json.dumps({**piece, "mask": 5}).replace("5", "[" * deep + "]" * deep, 1).encode() + b" " * 10_000,
    ]  # fmt: skip
    seal(raw, generator.choice(texts))


def rewritten(generator: random.Random, raw: bytearray) -> str:
    """Change what an array says, with right checksums; return its name."""
    number = generator.randrange(len(piece_of(raw)["segments"]))
    entries = read_contents(Bytes(raw)).segments[number].arrays
    name = generator.choice([name for name, each in entries.items() if each.n_bytes])

    def change(values: Any) -> Any:
        how, kind = generator.randrange(4), values.dtype
        if how > 1:
            return np.roll(values, 1) if how == 2 else values[::-1]
        flat, most = values.reshape(-1), 2 ** (8 * kind.itemsize - 1) - 1
        for _ in range(generator.choice([1, 1, 2, 8])):
            at = generator.randrange(len(flat))
            old = int(flat[at])
            new = generator.choice([0, 1, -1, old + 1, old - 1, most, -most - 1, 31, 10, 27]) & 2 * most + 1
            flat[at] = np.array(new, dtype="u8").astype(f"u{kind.itemsize}").view(kind)
        return values

    rewrite(raw, name, change, number)
    return name


WAYS: list[Change] = [
    flipped, flipped_in_the_block, flipped_in_the_contents, cut, pointed_elsewhere,
    chained, retold, retold, another_text, rewritten,
]  # fmt: skip

SEALED: set[Change] = {flipped_in_the_contents, chained, retold, rewritten}
"""Ways that may make another database, which is as sound as one; after all others nothing but what was written is
read."""


def led_elsewhere(generator: random.Random, folder: Path) -> None:
    """Change a manifest so that it leads to a pipe, a device, another folder, itself, another manifest."""
    os.mkfifo(folder / "pipe")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    (folder / "folder").mkdir()
    shutil.copy(folder / "list.json", folder / "other.json")
    said = json.loads((folder / "list.json").read_text())
    listed = said["segments"]
    paths = ["pipe", "zero", "loop", "folder", "list.json", "other.json", "./list.000.h5", "list.001.h5", "..", "",
             "../list.000.h5", "/dev/zero", "/etc/passwd",
             "a\0b", "\ud800", "\x1b[31m", "x" * 5000, "none.h5", "."]  # fmt: skip
    kind = generator.randrange(8)
    if kind < 4:
        generator.choice(listed)["file"] = generator.choice([*paths, value(generator, "")])
    elif kind == 4:
        name = generator.choice(list(listed[0]))
        listed[0][name] = value(generator, listed[0][name])
    elif kind == 5:
        place = generator.choice([said, listed[0]])
        del place[generator.choice(list(place))]
    elif kind == 6:
        said["segments"] = generator.choice([listed * 2, listed * 4500, listed[::-1], listed[1:], [], {}, [listed]])
    else:
        said |= {generator.choice(list(said)): value(generator, 5)}
    text = bytearray(json.dumps(said).encode())
    if generator.random() < 0.2:
        scatter(generator, text, range(len(text)))
    (folder / "list.json").write_bytes(text)


def read_all(path: str) -> str:
    """Read all that a database holds, as searches and reports do; return a hash of it."""
    digest = hashlib.sha256()
    with Database.open(path) as database:
        every = np.arange(min(database.n_subjects, 2 * N_SUBJECTS))[::-1]
        found = [database.codes_of(every), database.headers_of(every), database.lengths_of(every)]
        found += [database.masked_runs_of(every, mask) for mask in ("lower", database.mask)]
        if database.genetic_code is None:
            for chunk in database.chunks(1 << 14, mask="lower"):
                found += [(chunk.residues, chunk.subjects)]
        taxids = database.taxids_of(every)
        for arrays in [*found, (taxids.data, taxids.offsets)]:
            for each in arrays:
                digest.update(np.asarray(each).tobytes())
        database.info()
        names = [database.taxonomy.taxon(taxid) for taxid in database.taxids.tolist()]
        digest.update(repr([names, database.find_many(["s1_3", "s2_1"]), database.sources()]).encode())
    return digest.hexdigest()


class DatabaseContents(Kind):
    """Whatever a file says of itself, it is read as it was written or refused, soon and in little memory."""

    name = "contents"
    what = "databases with a changed user block, contents, array or manifest, half of them with right sums, all read"
    counts = (44, 1_100, 20_000)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_samples(folder)
        self.bases = build_samples(folder)
        shutil.copy(folder / "two.h5", folder / "three.h5")
        succeed(command("db", "append", "three.h5", "more.fasta", "-q", "--on-duplicate", "keep", cwd=folder))
        subjects, taxa = write_subjects(folder / "taxa.fasta"), write_taxonomy(folder / "taxdump")
        more = ["--taxids", "header", "--taxonomy", taxa, "-q"]
        succeed(command("db", "build", subjects, "-o", folder / "taxa.h5", *more, cwd=folder))
        generator = random.Random(1)
        letters = ["".join(generator.choices("ACGTNacgt", k=generator.randrange(90))) for _ in range(40)]
        (folder / "dna.fasta").write_text("".join(f">s1_{k}\n{each}\n" for k, each in enumerate(letters)))
        succeed(command("db", "build", "dna.fasta", "-o", "dna.h5", "--translate", "-q", cwd=folder))
        for number in range(3):
            shutil.copy(folder / f"{['plain', 'two', 'three'][number]}.h5", folder / f"list.{number:03}.h5")
        write_manifest(folder / "list.json", [folder / f"list.{number:03}.h5" for number in range(3)])
        self.bases += ["three.h5", "taxa.h5", "dna.h5"]
        self._whole = {base: self._read(folder / base) for base in [*self.bases, "list.json"]}

    @staticmethod
    def _read(path: Path, expected: bytes = b"") -> Done:
        """Read a database; where it is another one than expected, verify it."""

        def work() -> None:
            started = time.process_time()
            try:
                found = read_all(path.name)
            except DatabaseError as error:
                assert error.exit_code == 2 and (path.suffix == ".json" or str(error).startswith(path.name)), error
                found = "refused"
            took = time.process_time() - started
            print(found)
            if took > MAX_CPU_SECONDS:
                raise Wrong(f"took {took:.2f} s of a processor")
            if expected and found != "refused" and found != expected.decode().strip():
                verify.differences = lambda *_: ()  # type: ignore[assignment]  # HDF5 is not asked
                verify_database(path.name)

        return copy(work, cwd=path.parent)

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Change a database and read all of it."""
        generator = self.generator(seed)
        if seed % (len(WAYS) + 1) == len(WAYS):
            base, name, is_sealed = "list.json", "led_elsewhere", True
            for path in self.folder.glob("list.*"):
                shutil.copy(path, folder)
            led_elsewhere(generator, folder)
        else:
            base, way = generator.choice(self.bases), WAYS[seed % (len(WAYS) + 1)]
            name, is_sealed = way.__name__, way in SEALED
            raw = bytearray((self.folder / base).read_bytes())
            way(generator, raw)
            (folder / base).write_bytes(raw)
        whole = self._whole[base]
        done = self._read(folder / base, whole.out)
        with told_of(f"{base}, {name}"):
            check_end(done, whole.peak)
            check_success(done)
            if done.out == b"refused\n":
                return refused()
            if done.out != whole.out and not is_sealed:
                raise Wrong("other content than was written was read")
        return succeeded()
