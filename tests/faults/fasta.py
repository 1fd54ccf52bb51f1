"""Sequence files: legal ones of every shape, damaged ones, compressed ones; the right records or a sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import re
import shutil
from pathlib import Path

from faults.data import QUERIES, build_samples, protein, write_samples
from faults.judging import Kind, Verdict, Wrong, check_end, check_left, check_refusal, refused, succeeded
from faults.running import Done, command
from swsearch.alphabet import PROTEIN
from swsearch.db import Database

BLANKS = b" \t\v\f"
LEGAL = (PROTEIN.letters + PROTEIN.letters.lower()).encode()
NUCLEOTIDES = set("ACGTUNRYKMSWBDHV")

Records = list[tuple[bytes, str]]


class Illegal(Exception):  # noqa: N818
    """The file must be refused."""


def read(data: bytes) -> Records:
    """Read a file as its rules are stated, line by line; raise `Illegal` where it breaks one."""
    records: Records = []
    for line in re.split(rb"\r\n|\n|\r", plain(data).removeprefix(b"\xef\xbb\xbf")):
        if line.startswith(b">"):
            header = line[1:]
            if b"\0" in header or not re.match(rb"[ \t\v\f]*[^ \t\v\f\x01]", header):
                raise Illegal("a header without a name, or with a NUL")
            records.append((header, ""))
            continue
        letters = line.translate(None, BLANKS)
        if letters.strip(LEGAL) or letters.translate(None, LEGAL):
            raise Illegal("what is no letter")
        if letters and not records:
            raise Illegal("letters before the first header")
        if letters:
            header, before = records.pop()
            records.append((header, before + letters.decode()))
    if not records:
        raise Illegal("no records")
    return records


def plain(data: bytes) -> bytes:
    """Decompress with Python's own modules; raise `Illegal` where they fail."""
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:6] == b"\xfd7zXZ\0":
            return lzma.decompress(data, lzma.FORMAT_XZ)
        if data[:3] == b"BZh":
            return bz2.decompress(data)
        if data[:4] == b"\x28\xb5\x2f\xfd":
            import zstandard

            whole = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
            return bytes(whole.read())
    except Exception as error:  # each module has errors of its own, and others for damage
        raise Illegal(str(error)) from error
    return data


def compressed(generator: random.Random, data: bytes) -> bytes:
    """Compress, in one member or in two."""
    import zstandard

    squeeze = generator.choice(
        [lambda part: gzip.compress(part, mtime=0), bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress]
    )
    cut = generator.choice([0, generator.randint(0, len(data))])
    return squeeze(data[:cut]) + squeeze(data[cut:]) if cut else squeeze(data)


def text(generator: random.Random) -> bytes:
    """Write a legal file."""
    end = generator.choice([b"\n", b"\n", b"\r\n", b"\r"])
    pieces = [generator.choice([b"", b"", b"", b"\xef\xbb\xbf", end * 2])]
    names = ["name", "sp|P1|N_X", "né", "x" * 300, "a\x01b", "g\xff", "1", "a,b"]
    for number in range(generator.choice([1, 1, 2, 3, 10, 40])):
        name = f"{generator.choice(names)}{number}"
        description = generator.choice(["", " ", " what it is", "\tOS=é", " > not a header", " \x01 gi|2"])
        pieces += [b">", (name + description).encode(generator.choice(["utf-8", "latin-1"])), end]
        letters = protein(generator, generator.choice([0, 1, 7, 60, 61, 200, 1000]))
        if generator.random() < 0.3:
            letters = "".join(generator.choice([letter, letter.lower()]) for letter in letters)
        if generator.random() < 0.2:
            letters += generator.choice("*XBZJUO")
        width = generator.choice([10, 60, 10_000])
        for start in range(0, len(letters), width):
            pieces += [letters[start : start + width].encode(), generator.choice([b"", b"", b"", b" ", b"\t"]), end]
        pieces.append(generator.choice([b"", b"", b"", end]))
    made = b"".join(pieces)
    return made.rstrip(b"\r\n") if generator.random() < 0.2 else made


def damaged(generator: random.Random, data: bytes) -> bytes:
    """Change some of the bytes."""
    changed = bytearray(data)
    for _ in range(generator.choice([1, 1, 1, 2, 5])):
        at = generator.randint(0, len(changed))
        length = generator.choice([1, 1, 2, 30])
        kind = generator.randrange(8)
        if kind == 0:
            changed[at : at + 1] = bytes([generator.randrange(256)])
        elif kind == 1:
            changed[at:at] = generator.randbytes(length)
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            changed[at:at] = changed[at // 2 : at // 2 + length]
        elif kind == 4:
            del changed[at:]
        elif kind == 5:
            changed[at:at] = generator.choice(
                [b">", b"\n>", b"\0", b"\x1b[31m", b"\r", b"-", b".", b"\xc2\x9b2J", b";"]
            )
        elif kind == 6:
            changed[at : at + length] = bytes(length)
        else:
            changed += generator.choice([b"\0\0\0", b"\n\n", b"garbage", b">", changed[:length]])
    return bytes(changed)


def make(generator: random.Random) -> bytes:
    """Make a file."""
    data = text(generator)
    kind = generator.random()
    if kind < 0.25:
        return data
    if kind < 0.75:
        return damaged(generator, data)
    if kind < 0.85:
        return compressed(generator, damaged(generator, data) if generator.random() < 0.5 else data)
    return damaged(generator, compressed(generator, data))


class Fasta(Kind):
    """A file is read as an independent reader reads it, or refused with its name; nothing is left."""

    name = "fasta"
    what = "sequence files, legal, damaged and compressed, to db build, db append and search"
    counts = (12, 200, 10_000)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_samples(folder)
        build_samples(folder)
        self.ordinary = command("db", "build", "subjects.fasta", "-o", "again.h5", cwd=folder).peak
        with Database.open(folder / "plain.h5") as database:
            self.base = [(database.header(n), database.sequence(n)) for n in range(len(database))]

    def judge(self, seed: int, folder: Path) -> Verdict:
        """Read a file in one of four ways."""
        generator = self.generator(seed)
        data = make(generator)
        (folder / "input.fasta").write_bytes(data)
        try:
            expected: Records | None = read(data)
        except Illegal:
            expected = None
        as_what = generator.choices([self._build, self._append, self._query, self._subject], [12, 2, 4, 2])[0]
        buffer = generator.choice([1 << 23, 1 << 23, 16, 17, 64, 1000])

        def small_buffers() -> None:
            from swsearch.db import building, fasta

            building.BUFFER_BYTES = buffer
            fasta.FastaReader.__init__.__defaults__ = (PROTEIN, buffer)

        done = as_what(folder, expected, small_buffers)
        check_end(done, self.ordinary)
        if done.code == 0:
            if expected is None:
                raise Wrong("taken, though it breaks a rule")
            return succeeded()
        check_refusal(done, [2] if as_what == self._subject else [1], "input.fasta")
        letters = {letter for _, each in expected or [] for letter in each.upper()}
        no_letters = expected is not None and not letters
        nucleotides = expected is not None and letters <= NUCLEOTIDES and "DNA" in done.err
        odd_end = plain_differs(data)
        if expected is not None and not (no_letters or nucleotides or odd_end):
            raise Wrong(f"refused, though it is legal: {done.err.strip()}")
        return refused()

    def _build(self, folder: Path, expected: Records | None, before: object) -> Done:
        done = command("db", "build", "input.fasta", "-o", "out.h5", cwd=folder, before=before)
        check_left(folder, "input.fasta", *(["out.h5"] if done.code == 0 else []))
        if done.code == 0:
            self._compare(folder / "out.h5", expected or [])
        return done

    def _append(self, folder: Path, expected: Records | None, before: object) -> Done:
        shutil.copy(self.folder / "plain.h5", folder / "db.h5")
        done = command("db", "append", "db.h5", "input.fasta", "--on-duplicate", "keep", cwd=folder, before=before)
        check_left(folder, "input.fasta", "db.h5")
        self._compare(folder / "db.h5", self.base + (expected or [] if done.code == 0 else []))
        return done

    def _query(self, folder: Path, expected: Records | None, before: object) -> Done:
        words = ["search", "input.fasta", self.folder / "plain.h5", "--outfmt", "jsonl", "--threads", 1]
        done = command(*words, "--engine", "cpu", cwd=folder, before=before)
        check_left(folder, "input.fasta")
        if done.code == 0:
            lines = [json.loads(line) for line in done.out.splitlines()]
            lengths = [line["query"]["length"] for line in lines]
            if lengths != [len(letters) for _, letters in expected or []]:
                raise Wrong(f"{len(lines)} queries, expected {len(expected or [])}, or of other lengths")
        return done

    def _subject(self, folder: Path, expected: Records | None, before: object) -> Done:
        queries = self.folder / "queries.fasta"
        words = ["search", queries, "input.fasta", "--statistics", "none", "--outfmt", "6 qseqid sseqid slen"]
        done = command(*words, "--threads", 1, "--engine", "cpu", cwd=folder, before=before)
        check_left(folder, "input.fasta")
        if done.code == 0:
            lengths = {len(letters) for _, letters in expected or []}
            rows = [line.split(b"\t") for line in done.out.splitlines()]
            if len(rows) > len(QUERIES) * len(expected or []) or {int(row[2]) for row in rows} - lengths:
                raise Wrong("hits that are no subjects")
        return done

    def _compare(self, path: Path, expected: Records) -> None:
        with Database.open(path) as database:
            if len(database) != len(expected):
                raise Wrong(f"{len(database)} records, expected {len(expected)}")
            for place, record in enumerate(expected):
                if (database.header(place), database.sequence(place)) != record:
                    raise Wrong(f"record {place} is not the one that was written")


def plain_differs(data: bytes) -> bool:
    """Say whether a file is compressed: with bytes after its end readers differ, and refusing is right."""
    return data[:2] == b"\x1f\x8b" or data[:6] == b"\xfd7zXZ\0" or data[:3] == b"BZh" or data[:3] == b"\x28\xb5\x2f"
