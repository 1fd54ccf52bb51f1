"""Building: the same bytes whatever the budget, and nothing left behind whatever happens."""

from __future__ import annotations

import gc
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import AbstractContextManager
from pathlib import Path

import h5py
import numpy as np
import pytest

from support.db_helpers import HBA, HBB, LETTERS
from support.processes import started
from support.samples import sample
from swsearch.blocks import LANES, interleave
from swsearch.db import Database, append_database, build_database, verify_database
from swsearch.db.layout import Layout
from swsearch.db.spool import Spool
from swsearch.errors import (
    DatabaseDamageError,
    DatabaseError,
    MemoryLimitError,
    OptionError,
    OutputError,
    SequenceError,
)
from swsearch.options.words import Mask

MIB = 1 << 20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pick = random.Random(3)
    path = tmp_path / "in.fasta"
    path.write_text(
        "".join(f">r{i} d\n{''.join(pick.choices(LETTERS, k=pick.randint(0, 400)))}\n" for i in range(1000))
    )
    return path


def datasets(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, each: found.update({name: each[()].tobytes()}) if hasattr(each, "dtype") else None
        )
    return found


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".tmp") or path.name == "out.h5")


def starve(monkeypatch: pytest.MonkeyPatch, most_residues: int = 27_000) -> None:
    """Let subjects be sorted in many groups; the longest block of ``source`` has 25,000 residues."""
    planned = Layout.__init__

    def starved(self: Layout, spool: Spool, memory: int, mask: Mask = "none") -> None:
        planned(self, spool, memory, mask)
        self._group_bytes = most_residues

    monkeypatch.setattr(Layout, "__init__", starved)


def test_a_small_budget_makes_the_same_bytes(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_database(source, tmp_path / "large.h5")
    starve(monkeypatch)
    monkeypatch.setattr("swsearch.db.layout.WINDOW_COLUMNS", 72)
    monkeypatch.setattr("swsearch.db.build.BUFFER_BYTES", 1000)
    build_database(source, tmp_path / "small.h5")
    assert datasets(tmp_path / "small.h5") == datasets(tmp_path / "large.h5")
    verify_database(tmp_path / "small.h5")


def test_smallest_memory(tmp_path: Path, source: Path) -> None:
    build_database([source], str(tmp_path / "out.h5"), memory=64 * MIB)
    for memory in (64 * MIB - 1, 0, -5, 1e9, "1G", True):
        with pytest.raises(OptionError, match=r"memory: got .* at least"):
            build_database(source, tmp_path / "other.h5", memory=memory)  # type: ignore[arg-type]


def test_blocks_that_do_not_fit_the_memory(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text("".join(f">c{i}\n{'M' * MIB}\n" for i in range(12)))
    with pytest.raises(MemoryLimitError, match=r"12,582,912 residues together; allow at least \d+ MiB"):
        build_database(tmp_path / "in.fasta", tmp_path / "out.h5", memory=64 * MIB)
    build_database(tmp_path / "in.fasta", tmp_path / "out.h5", memory=80 * MIB)
    verify_database(tmp_path / "out.h5")


def peak_of_a_build(inputs: Path, output: Path) -> int:
    """Return the most memory that Python and numpy hold during a build, in bytes."""
    gc.collect()
    gc.freeze()  # how often garbage is collected follows from how much is there that stays: here as in a new process
    gc.collect()
    tracemalloc.start()
    try:
        build_database(inputs, output, memory=64 * MIB)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()


KINDS_OF_RECORDS = {
    "one length": lambda pick: ">r\n" + "M" * 30,
    "any length": lambda pick: ">r\n" + "M" * pick.randint(1, 60),
    "masked": lambda pick: ">r and more\nMmMmMMMMMMMMMMMmmmMMMMMMMMMMMM",
    "shortest first": lambda pick: ">r\n" + "M" * pick.randint(20, 40),
    "nearly all empty": lambda pick: ">r" + "\nMV" * (pick.random() < 0.01),
}


@pytest.mark.parametrize("kind", sample(KINDS_OF_RECORDS, lambda kind: kind == "nearly all empty"))
def test_memory_does_not_grow_with_the_records(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all pieces small, 400,000 records more take no more: half a byte for each of them would be seen."""
    monkeypatch.setattr("swsearch.db.build.BUFFER_BYTES", 1 << 15)
    monkeypatch.setattr("swsearch.db.numbers.IN_MEMORY", 1 << 12)
    monkeypatch.setattr("swsearch.db.layout.MIB", 1 << 14)
    monkeypatch.setattr("swsearch.db.layout.WINDOW_COLUMNS", 1 << 10)
    for module in ("numbers", "layout"):
        monkeypatch.setattr(f"swsearch.db.{module}.NUMBERS_AT_ONCE", 1 << 10)
    starve(monkeypatch, 200_000)
    pick = random.Random(1)
    some = [KINDS_OF_RECORDS[kind](pick) + "\n" for _ in range(1000)]
    peaks = []
    for times in (1, 45, 445):  # what is imported or made once counts for none, and groups are full from 30,000 on
        records = some * times
        (tmp_path / "in.fasta").write_text("".join(sorted(records, key=len) if kind == "shortest first" else records))
        peaks.append(peak_of_a_build(tmp_path / "in.fasta", tmp_path / "out.h5"))
    assert peaks[2] < peaks[1] + 200_000, peaks  # where pieces end, peaks differ by some 50 kB


@pytest.mark.exhaustive
def test_a_million_records_within_the_smallest_memory(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text((f">r\n{HBA[:30]}\n>rr\n{HBB[:20].lower()}\n") * 1_000_000)
    assert peak_of_a_build(tmp_path / "in.fasta", tmp_path / "out.h5") < 64 * MIB
    verify_database(tmp_path / "out.h5")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
@pytest.mark.parametrize("at", ["regroup.Groups.fill", "regroup.Groups.read", "layout.DatasetWriter.close"])
def test_what_ends_while_subjects_are_sorted_leaves_nothing(
    tmp_path: Path, source: Path, at: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> None:
        raise error

    starve(monkeypatch)
    monkeypatch.setattr(f"swsearch.db.{at}", ended)
    with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
        build_database(source, tmp_path / "out.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["in.fasta"]


def test_layout_is_that_of_blocks(tmp_path: Path, source: Path) -> None:
    with Database.build(source, tmp_path / "out.h5") as db, h5py.File(tmp_path / "out.h5") as file:
        group = file["segments/0"]
        lengths, order, offsets = group["lengths"][:], group["order"][:], group["block_offsets"][:]
        assert order.tolist() == sorted(range(1000), key=lambda i: (-db.lengths[i], i))
        for block in range(len(offsets) - 1):
            lanes = slice(block * LANES, (block + 1) * LANES)
            expected = np.empty((offsets[block + 1] - offsets[block], LANES), dtype=np.uint8)
            interleave(np.concatenate([db.codes(i) for i in order[lanes]]), lengths[lanes], expected)
            np.testing.assert_array_equal(group["residues"][offsets[block] : offsets[block + 1]], expected)


def test_several_inputs(tmp_path: Path, source: Path) -> None:
    packed = tmp_path / "b.fasta.gz"
    packed.write_bytes(gzip.compress(f">x\n{HBA}".encode()))  # no final newline: its record must not run on
    calls: list[tuple[int, int | None]] = []
    with Database.build(
        [source, packed, source], tmp_path / "out.h5", progress=lambda done, total: calls.append((done, total))
    ) as db:
        assert (db.n_subjects, db.sequence(1000), db.identifier(1001)) == (2001, HBA, "r0")
        sources = db.info()["segments"][0]["sources"]
    assert [each["path"] for each in sources] == [str(source), str(packed), str(source)]
    assert [each["records"] for each in sources] == [1000, 1, 1000]
    total = 2 * source.stat().st_size + packed.stat().st_size
    assert calls[-1] == (total, total) and calls == sorted(calls)


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (b"", "no FASTA records"),
            (b">only a header", "no residues in 1 records"),
            (b">a\n>b\n\n", "no residues in 2 records"),
            (b">a\nM-V\n", "line 2: '-' is a gap"),
        ],
    )
    def test_bad_input_leaves_nothing(self, tmp_path: Path, source: Path, text: bytes, words: str) -> None:
        bad = tmp_path / "bad.fasta"
        bad.write_bytes(text)
        inputs = [bad] if b"header" in text or b">b" in text else [source, bad]
        with pytest.raises(SequenceError, match=words):
            build_database(inputs, tmp_path / "out.h5")
        assert not leftovers(tmp_path)

    def test_missing_input(self, tmp_path: Path, source: Path) -> None:
        with pytest.raises(SequenceError, match="no such file"):
            build_database([source, tmp_path / "missing"], tmp_path / "out.h5")
        with pytest.raises(OptionError, match="at least one"):
            build_database([], tmp_path / "out.h5")
        assert not leftovers(tmp_path)

    def test_bad_outputs(self, tmp_path: Path, source: Path) -> None:
        text = source.read_bytes()
        foreign = tmp_path / "foreign.h5"
        with h5py.File(foreign, "w") as file:
            file["x"] = 1
        cases = {
            tmp_path: "is a directory",
            tmp_path / "none" / "out.h5": "none not found; create it",
            source: "is one of the inputs",
            foreign: "exists and is not a swsearch database; choose another name",
            Path("/dev/null"): "exists and is not a swsearch database",
        }
        for output, words in cases.items():
            with pytest.raises(OutputError, match=words):
                build_database(source, output)
        assert source.read_bytes() == text

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_no_permission(self, tmp_path: Path, source: Path) -> None:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o555)
        with pytest.raises(OutputError, match="no permission"):
            build_database(source, locked / "out.h5")

    def test_replacing(self, tmp_path: Path, source: Path) -> None:
        output, link = tmp_path / "out.h5", tmp_path / "link.h5"
        output.touch(mode=0o640)  # an empty file, as mktemp makes it, is nobody's data
        build_database(source, output)
        assert output.stat().st_mode & 0o777 == 0o640
        with pytest.raises(OutputError, match=r"out\.h5: exists; choose"):
            build_database(source, output, overwrite=False)
        link.symlink_to(output)
        (tmp_path / "b.fasta").write_text(f">b\n{HBB}\n")
        with Database.open(output) as old:
            build_database(tmp_path / "b.fasta", link)
            assert old.identifier(999) == "r999"  # whoever has the old one open keeps it
        assert link.is_symlink()
        with Database.open(output) as db:
            assert db.n_subjects == 1
        assert leftovers(tmp_path) == ["out.h5"]

    def test_a_failed_build_keeps_the_old_database(self, tmp_path: Path, source: Path) -> None:
        build_database(source, tmp_path / "out.h5")
        before = (tmp_path / "out.h5").read_bytes()
        (tmp_path / "bad.fasta").write_text(">a\nM-\n")
        for make in (build_database, lambda inputs, output: append_database(output, inputs, on_duplicate="keep")):
            with pytest.raises(SequenceError):
                make(tmp_path / "bad.fasta", tmp_path / "out.h5")
        assert (tmp_path / "out.h5").read_bytes() == before
        assert leftovers(tmp_path) == ["out.h5"]


class TestAppendFaults:
    def test_no_database(self, tmp_path: Path, source: Path) -> None:
        with pytest.raises(DatabaseError, match="no such database"):
            append_database(tmp_path / "out.h5", source, on_duplicate="keep")
        with pytest.raises(DatabaseError, match="is not a swsearch database"):
            append_database(source, source, on_duplicate="keep")

    def test_itself(self, tmp_path: Path, source: Path) -> None:
        build_database(source, tmp_path / "out.h5")
        with pytest.raises(OutputError, match="is one of the inputs"):
            append_database(tmp_path / "out.h5", tmp_path / "out.h5", on_duplicate="keep")

    def test_damage_is_not_copied(self, tmp_path: Path, source: Path) -> None:
        path = tmp_path / "out.h5"
        build_database(source, path)
        with h5py.File(path) as file:
            at = file["segments/0/residues"].id.get_offset() + 1000
        raw = bytearray(path.read_bytes())
        raw[at] ^= 1
        path.write_bytes(raw)
        with pytest.raises(DatabaseDamageError, match=r"residues bytes 0 to .*checksum differs"):
            append_database(path, source, on_duplicate="keep")
        assert path.read_bytes() == raw and leftovers(tmp_path) == ["out.h5"]

    def test_a_database_that_changes_meanwhile(
        self, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "out.h5"
        build_database(source, path)
        from swsearch.db import append

        fill = append.fill
        monkeypatch.setattr(append, "fill", lambda *given: (fill(*given), os.utime(path, (1, 1))))
        with pytest.raises(OutputError, match="changed while"):
            append_database(path, source, on_duplicate="keep")
        assert leftovers(tmp_path) == ["out.h5"]


CHILD = """
import json, resource, signal, sys
from swsearch.db import append_database, build_database
from swsearch.errors import SwsearchError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
inputs, output, limit, append = json.loads(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    (append_database(output, inputs, on_duplicate="keep") if append else build_database(inputs, output))
except SwsearchError as error:
    print(type(error).__name__, error)
except KeyboardInterrupt:
    print("interrupted")
"""


def child(
    inputs: list[Path], output: Path, limit: int = 0, append: bool = False
) -> AbstractContextManager[subprocess.Popen[str]]:
    job = json.dumps([[str(each) for each in inputs], str(output), limit, append])
    return started([sys.executable, "-W", "error", "-c", CHILD, job], text=True)


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("share", [0.001, 0.02, 0.5, 0.9, 0.999])
def test_full_disk(tmp_path: Path, share: float, append: bool) -> None:
    """A limit on file sizes fails as a full disk does, in the spool, in HDF5's close or in the data."""
    pick = random.Random(4)
    source, output = tmp_path / "in.fasta", tmp_path / "out.h5"
    line = "".join(pick.choices(LETTERS, k=50_000))
    source.write_text("".join(f">r{i}\n{line}\n" for i in range(130)))  # 6.5 MB outgrows the spool's memory
    build_database(source, tmp_path / "whole.h5")
    size = (tmp_path / "whole.h5").stat().st_size
    before = b""
    if append:
        output.write_bytes(before := (tmp_path / "whole.h5").read_bytes())
        size *= 2
    with child([source], output, limit=int(size * share), append=append) as process:
        out, err = process.communicate(timeout=60)
    assert out.startswith("OutputError") and "out.h5" in out, out + err
    assert "File too large; raise the limit on file sizes" in out
    assert (process.returncode, err) == (0, "")
    assert leftovers(tmp_path) == (["out.h5"] if append else [])
    if append:
        assert output.read_bytes() == before


def stopped_at_some_time(tmp_path: Path, stop: signal.Signals, delay: float) -> tuple[str, str]:
    """Stop a build that reads a pipe which never ends, once it has begun."""
    pipe, output = tmp_path / "pipe", tmp_path / "out.h5"
    os.mkfifo(pipe)
    with child([pipe], output) as process, pipe.open("w") as feed:
        feed.write(f">a\n{HBA}\n" * 100_000)
        feed.flush()
        deadline = time.monotonic() + 20
        while not leftovers(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert leftovers(tmp_path), "the build did not begin"
        time.sleep(delay)
        process.send_signal(stop)
        out, err = process.communicate(timeout=30)
    return out, err


@pytest.mark.parametrize("delay", [0, 0.1])
def test_killed(tmp_path: Path, delay: float) -> None:
    stopped_at_some_time(tmp_path, signal.SIGKILL, delay)
    assert not (tmp_path / "out.h5").exists()
    assert all(name.startswith(".out.h5.") for name in leftovers(tmp_path))
    # the next build or append beside it removes what that one left
    build_database(_small(tmp_path), tmp_path / "next.h5")
    assert leftovers(tmp_path) == []


def test_an_append_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    build_database(_small(tmp_path), output)
    os.mkfifo(tmp_path / "pipe")
    with child([tmp_path / "pipe"], output, append=True) as process, (tmp_path / "pipe").open("w"):
        deadline = time.monotonic() + 20
        while leftovers(tmp_path) == ["out.h5"] and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.communicate()
    assert len(leftovers(tmp_path)) == 2
    append_database(output, _small(tmp_path), on_duplicate="keep")
    assert leftovers(tmp_path) == ["out.h5"]
    verify_database(output)


def test_a_spool_has_no_name_that_a_killed_process_could_leave(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        for file in (spool.codes, spool.headers):
            file.write(bytes(5 << 20))
            file.flush()
            assert list(tmp_path.iterdir()) == []


def _small(folder: Path) -> Path:
    path = folder / "small.fasta"
    path.write_text(f">a\n{HBB}\n")
    return path


@pytest.mark.parametrize("delay", [0, 0.1])
def test_interrupted(tmp_path: Path, delay: float) -> None:
    out, err = stopped_at_some_time(tmp_path, signal.SIGINT, delay)
    assert (out, err) == ("interrupted\n", "")
    assert not leftovers(tmp_path)


def test_killed_at_any_moment(tmp_path: Path, source: Path) -> None:
    """Whenever the process dies, the file under the final name is absent or whole."""
    small = tmp_path / "small.fasta"
    small.write_text(f">a\n{HBB}\n")
    seen = set()
    for step in range(6):
        output = tmp_path / f"{step}.h5"
        build_database(small, output)
        with child([source] * 40, output) as process:
            deadline = time.monotonic() + 20
            while not list(tmp_path.glob(f".{step}.h5.*")) and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(0.02 * step)
            process.kill()
            process.communicate()
        verify_database(output)
        with Database.open(output) as db:
            seen.add(db.n_subjects)
    assert seen <= {1, 40_000}
