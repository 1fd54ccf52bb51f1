"""A search that was ended at any moment goes on, and finds what it would have found; other folders are refused."""

import contextlib
import errno
import io
import itertools
import os
import shutil
import threading

import numpy as np
import pytest

import swsearch
from support.cases import random_codes
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError, OutputError, SwsearchWarning
from swsearch.output_files import TemporaryFile
from swsearch.pipeline import checkpoint as checkpoints
from swsearch.pipeline import scorer as scored
from swsearch.pipeline import search_job as job
from swsearch.pipeline.checkpoint import Checkpoint
from swsearch.pipeline.ranking import Ranked
from swsearch.pipeline.selection import Selection

MANIFEST = {"version": "1", "distribution": False}

GENERATOR = np.random.default_rng(11)
SUBJECTS = [PROTEIN.decode(random_codes(GENERATOR, n, 20)) for n in GENERATOR.integers(20, 90, 80)]
QUERIES = [SUBJECTS[0][:40], "", SUBJECTS[1] + SUBJECTS[2], SUBJECTS[3][3:], SUBJECTS[4], SUBJECTS[5][:30]]


@pytest.fixture(scope="module")
def database():
    with Database.from_records(SUBJECTS) as opened:
        yield opened


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(job, "GROUP_ROWS", 60)
    monkeypatch.setattr(job, "FIRST_ROWS", (60,))


@pytest.fixture
def selected(monkeypatch):
    """How many queries were scored, group by group."""
    found = []
    score = scored.Scorer.found

    def watched(self, prepared, *rest):
        found.append(len(prepared.queries))
        return score(self, prepared, *rest)

    monkeypatch.setattr(scored.Scorer, "found", watched)
    return found


def lines(database, engine, folder=None, **options):
    stream = io.StringIO()
    chosen = {"statistics": "published", "max_hits": 5, "evalue": 1e6} | options
    results = swsearch.search(QUERIES, database, engine=engine, checkpoint=folder, **chosen)
    swsearch.write(results, stream, "jsonl")
    return stream.getvalue()


def some(*scores):
    return Selection(Ranked(np.array(scores, dtype=np.int64), np.arange(len(scores))), 5)


def scores_of(found):
    return None if found is None else [each.candidates.scores.tolist() for each in found]


def opened(folder, **others):
    return Checkpoint(folder, MANIFEST | others, None, 10)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"statistics": "fitted", "evalue": 10},
        {"mode": "global", "statistics": "none", "evalue": None},
        {"distribution": True},
        {"min_identity": 40},
        {"max_alignments": 3},
        {"sort": "score"},
    ],
)
def test_what_is_kept_gives_the_same_bytes(tmp_path, database, cpu, small_groups, selected, options):
    expected = lines(database, cpu, **options)
    n_groups = len(selected)
    assert n_groups > 2
    assert lines(database, cpu, tmp_path / "new", **options) == expected
    assert len(selected) == 2 * n_groups
    assert lines(database, cpu, tmp_path / "new", **options) == expected
    assert len(selected) == 2 * n_groups  # nothing was scored again


def test_what_was_scored_and_not_yet_rated_is_not_scored_again(tmp_path, database, cpu, small_groups, selected):
    options = {"statistics": "fitted", "evalue": 10}
    expected = lines(database, cpu, **options)
    n_groups = len(selected)

    def refuse(*_):
        raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job.SearchJob, "rated", refuse)
        with pytest.raises(Killed):
            lines(database, cpu, tmp_path, **options)
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("queries-*")}
    assert kept
    del selected[:]
    assert lines(database, cpu, tmp_path, **options) == expected
    assert len(selected) == n_groups - len(kept)
    for name, before in kept.items():
        assert (tmp_path / name).read_bytes() != before  # it is rated now


def test_what_was_scored_does_not_need_the_copies_again(tmp_path, database, cpu, monkeypatch):
    options = {"statistics": "fitted", "evalue": 10}
    expected = lines(database, cpu, tmp_path, **options)
    monkeypatch.setattr(job.NullMaker, "of_queries", None)
    monkeypatch.setattr(job.NullMaker, "of_pairs", None)
    assert lines(database, cpu, tmp_path, **options) == expected


def test_a_search_that_its_caller_leaves_goes_on(tmp_path, database, cpu, small_groups, selected):
    expected = lines(database, cpu)
    del selected[:]
    results = swsearch.search(QUERIES, database, engine=cpu, checkpoint=tmp_path, statistics="published")
    next(results)
    results.close()
    assert selected[0] == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"lock", "manifest.json", "queries-000000001-000000002"}
    assert len(selected) - (len(names) - 2) in (0, 1)  # groups are scored ahead; the last may have been given up
    with pytest.raises(InputError, match=r"evalue was 10\.0, is 1000000\.0; max_hits was 500, is 5"):
        lines(database, cpu, tmp_path)
    shutil.rmtree(tmp_path)
    assert lines(database, cpu, tmp_path) == expected


def test_progress_counts_every_cell_once_and_tells_what_was_kept(tmp_path, database, cpu, small_groups):
    total = sum(map(len, QUERIES)) * database.n_residues
    for _ in range(2):
        counted, restored = [], []
        results = swsearch.search(QUERIES, database, engine=cpu, checkpoint=tmp_path, progress=counted.append)
        list(results)
        assert sum(counted) == total
        again = swsearch.search(QUERIES, database, engine=cpu, checkpoint=tmp_path, progress=counted.append)
        again.job.restored = restored.append
        list(again)
        assert sum(counted) == sum(restored) == total


def test_groups_may_be_cut_otherwise(tmp_path, database, cpu, monkeypatch, selected):
    expected = lines(database, cpu)
    monkeypatch.setattr(job, "GROUP_ROWS", 60)
    assert lines(database, cpu, tmp_path) == expected
    for path in tmp_path.glob("queries-*-000000006"):
        path.unlink()
    del selected[:]
    monkeypatch.setattr(job, "GROUP_ROWS", 160)
    assert lines(database, cpu, tmp_path) == expected
    assert len(selected) == 1
    monkeypatch.setattr(job, "GROUP_ROWS", 1)
    assert lines(database, cpu, tmp_path) == expected
    assert len(selected) == 1


def test_formats_that_show_no_distribution_take_what_has_one(tmp_path, database, cpu, selected):
    plain = lines(database, cpu)
    shown = lines(database, cpu, tmp_path, distribution=True)
    assert lines(database, cpu, tmp_path) == plain
    assert len(selected) == 2
    for path in tmp_path.glob("queries-*"):
        path.unlink()
    assert lines(database, cpu, tmp_path) == plain
    assert lines(database, cpu, tmp_path, distribution=True) == shown  # what lacks it is scored again
    assert len(selected) == 4
    other = tmp_path / "other"
    lines(database, cpu, other)
    with pytest.raises(InputError, match="distribution was off, is on"):
        lines(database, cpu, other, distribution=True)


class Killed(BaseException):
    """The process is gone."""


class Killer:
    """Ends a process at its n-th step of writing; what it was writing is torn, and nothing is cleaned up."""

    def __init__(self, monkeypatch):
        self.left = None
        sync, publish, discard = os.fsync, TemporaryFile.publish, TemporaryFile.discard

        def torn(number):
            if self.step():
                with contextlib.suppress(OSError):  # a folder
                    os.ftruncate(number, os.fstat(number).st_size // 2)
                raise Killed
            sync(number)

        def published(file, target):
            if self.step():
                raise Killed
            publish(file, target)
            if self.step():
                raise Killed

        def left(file):
            if self.left == 0 and file.descriptor >= 0:
                file._close()  # as the system closes it
            discard(file)

        monkeypatch.setattr(os, "fsync", torn)
        monkeypatch.setattr(TemporaryFile, "publish", published)
        monkeypatch.setattr(TemporaryFile, "discard", left)

    def step(self):
        if self.left:
            self.left -= 1
            return self.left == 0
        return False


def test_killed_at_any_step_it_goes_on_and_loses_one_group_at_most(tmp_path, monkeypatch):
    groups = [(0, [some(5, 4), some()]), (2, [some(7)]), (3, [some(8, 6, 1)])]
    scored = []

    def search(folder):
        """Search as a job does; scoring takes no engine."""
        found = []
        with opened(folder) as kept:
            for first, group in groups:
                taken = kept.load(first, len(group))
                if taken is None:
                    scored.append(first)
                    kept.save(first, group)
                found += scores_of(taken or group)
        return found

    killer = Killer(monkeypatch)
    expected = search(tmp_path / "undisturbed")
    for step in itertools.count(1):
        folder = tmp_path / str(step)
        del scored[:]
        killer.left = step
        with contextlib.suppress(Killed):
            assert search(folder) == expected
        if killer.left:
            break
        killer.left = None
        kept = len(list(folder.glob("queries-*")))
        assert len(scored) - kept in (0, 1)
        del scored[:]
        assert search(folder) == expected
        assert len(scored) == len(groups) - kept
        assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    assert step == 1 + (1 + len(groups)) * 4  # of each file: two for its bytes and its folder, before and after


@pytest.mark.parametrize(
    "step", [6, pytest.param(9, marks=pytest.mark.exhaustive), pytest.param(12, marks=pytest.mark.exhaustive)]
)
def test_a_killed_search_goes_on(tmp_path, database, cpu, small_groups, selected, monkeypatch, step):
    expected = lines(database, cpu)
    n_groups, killer = len(selected), Killer(monkeypatch)
    killer.left = step
    with pytest.raises(Killed):
        lines(database, cpu, tmp_path)
    killer.left = None
    kept = len(list(tmp_path.glob("queries-*")))
    del selected[:]
    assert lines(database, cpu, tmp_path) == expected
    assert len(selected) == n_groups - kept


def damaged(raw):
    middle = len(raw) // 2
    return {
        "empty": b"",
        "cut": raw[:-1],
        "longer": raw + b"\0",
        "changed": raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :],
        "first": b"x" + raw[1:],
        "zeros": bytes(len(raw)),
    }


@pytest.mark.parametrize("how", ["empty", "cut", "longer", "changed", "first", "zeros"])
def test_a_damaged_file_is_told_of_and_not_used(tmp_path, how):
    with opened(tmp_path) as kept:
        kept.save(0, [some(5, 4), some()])
        kept.save(2, [some(7)])
    path = tmp_path / "queries-000000001-000000002"
    path.write_bytes(damaged(path.read_bytes())[how])
    with opened(tmp_path) as kept:
        assert kept.n_kept == 3
        with pytest.warns(
            SwsearchWarning, match=r"queries-000000001-000000002 is damaged .* searching its queries again"
        ):
            assert kept.load(0, 2) is None
        assert kept.load(0, 2) is None  # told once
        assert scores_of(kept.load(2, 1)) == [[7]]
        kept.save(0, [some(5, 4), some()])
        assert scores_of(kept.load(0, 3)) == [[5, 4], [], [7]]


def test_a_file_of_other_queries_or_of_another_checkpoint_is_not_used(tmp_path):
    with opened(tmp_path / "one") as one, opened(tmp_path / "two", version="2") as two:
        one.save(0, [some(1)])
        two.save(1, [some(2)])
    shutil.copy(tmp_path / "two" / "queries-000000002-000000002", tmp_path / "one")
    shutil.copy(tmp_path / "one" / "queries-000000001-000000001", tmp_path / "one" / "queries-000000003-000000003")
    with opened(tmp_path / "one") as kept:
        assert scores_of(kept.load(0, 1)) == [[1]]
        for first in (1, 2):
            with pytest.warns(SwsearchWarning, match="its checksum differs"):
                assert kept.load(first, 1) is None


def test_a_manifest_that_was_edited_makes_nothing_of_another_search_usable(tmp_path):
    with opened(tmp_path) as kept:
        kept.save(0, [some(1)])
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"version": "1"', '"version": "2"'))
    with pytest.raises(InputError, match="version was 2, is 1"):
        opened(tmp_path)
    with opened(tmp_path, version="2") as kept, pytest.warns(SwsearchWarning, match="checksum differs"):
        assert kept.load(0, 1) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"what": "something"}', b"\xff\xfe"])
def test_a_damaged_manifest_is_refused(tmp_path, content):
    opened(tmp_path).close()
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=r"manifest.json is damaged or not a swsearch checkpoint"):
        opened(tmp_path)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"contains files, e.g. 'thesis.tex', but no manifest.json"):
        opened(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.tex", "lock"}
    with pytest.raises(OutputError, match=r"thesis.tex cannot be opened: File exists"):
        opened(tmp_path / "thesis.tex")
    with pytest.raises(OutputError, match="cannot be opened: Not a directory"):
        opened(tmp_path / "thesis.tex" / "folder")


def test_one_search_at_a_time(tmp_path):
    first = opened(tmp_path)
    with pytest.raises(
        InputError, match="is in use by another search; wait for that search, or choose another folder"
    ):
        opened(tmp_path)
    first.close()
    with opened(tmp_path), pytest.raises(InputError, match="in use"), first:
        pass
    with first, pytest.raises(InputError, match="in use"):
        opened(tmp_path)


def test_a_search_that_was_closed_lets_others_use_the_folder(tmp_path, database, cpu):
    first = swsearch.search(["MKV"], database, engine=cpu, checkpoint=tmp_path)
    assert first.run.max_hits == 500
    second = swsearch.search(["MKV"], database, engine=cpu, checkpoint=tmp_path)
    with pytest.raises(InputError, match="in use"):
        next(second)
    first.close()
    assert len(list(swsearch.search(["MKV"], database, engine=cpu, checkpoint=tmp_path))) == 1


def test_one_thread_loads_while_another_saves(tmp_path):
    with opened(tmp_path) as kept:
        saving = threading.Thread(target=lambda: [kept.save(n, [some(n)]) for n in range(5)])
        saving.start()
        for n in range(5):
            found = None
            while found is None:
                alive = saving.is_alive()
                found = kept.load(n, 1)
                assert alive or found is not None
            assert scores_of(found) == [[n]]
        saving.join()


def test_a_file_system_without_locks_will_do(tmp_path, monkeypatch):
    def refuse(number, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(checkpoints.fcntl, "flock", refuse)
    with opened(tmp_path) as kept:
        kept.save(0, [some(1)])
        assert scores_of(kept.load(0, 1)) == [[1]]


def test_a_full_disk_ends_it_and_what_was_kept_stays(tmp_path, database, cpu, small_groups, selected, monkeypatch):
    expected = lines(database, cpu)
    n_groups, sync, calls = len(selected), os.fsync, itertools.count()

    def full(number):
        if next(calls) >= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(number)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match=r"checkpoint: .* cannot be written: No space left on device") as caught:
            lines(database, cpu, tmp_path)
    assert caught.value.exit_code == 6
    assert not list(tmp_path.glob(".*"))
    del selected[:]
    assert lines(database, cpu, tmp_path) == expected
    assert 0 < len(selected) < n_groups


def test_queries_that_two_files_have_count_once(tmp_path):
    with opened(tmp_path) as kept:
        kept.save(0, [some(1), some(2), some(3)])
        kept.save(1, [some(2)])
        kept.save(5, [some(4)])
        assert kept.n_kept == 4
        assert kept.load(0, 4) is None
        assert scores_of(kept.load(1, 2)) == [[2], [3]]
    (tmp_path / "queries-000000005-000000001").touch()
    (tmp_path / "queries-00000000007-000000007").touch()
    assert opened(tmp_path).n_kept == 4


def test_what_a_killed_process_left_is_removed(tmp_path):
    opened(tmp_path).close()
    left = TemporaryFile(tmp_path / "queries-000000001-000000009")
    left._close()
    assert left.path.exists()
    opened(tmp_path).close()
    assert not left.path.exists()


def test_a_folder_that_could_not_be_begun_can_be(tmp_path):
    """A process was killed after the lock, and its temporary file is another computer's."""
    (tmp_path / "lock").touch()
    (tmp_path / ".manifest.json.swsearch-00000000-00000000-1-00000000.tmp").touch()
    opened(tmp_path).close()
    assert (tmp_path / "manifest.json").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "kept").touch()
    with pytest.raises(OptionError, match=r"checkpoint: got .*kept', expected a folder, not a file"):
        swsearch.search(["MKV"], ["MKV"], checkpoint=tmp_path / "kept", engine="cpu")


@pytest.mark.parametrize("given", [3, "", b"", ["folder"], True, "a\0b"])
def test_what_names_no_folder_is_refused(given):
    with pytest.raises(OptionError, match=r"checkpoint: got .* expected the name of a folder"):
        swsearch.search(["MKV"], ["MKV"], checkpoint=given, engine="cpu")


def test_a_search_that_is_refused_closes_what_it_opened(tmp_path, database, cpu, monkeypatch):
    path = tmp_path / "some.fasta"
    path.write_text(">a\nMKVWW\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "other").touch()
    closed = []
    monkeypatch.setattr(Database, "close", lambda self: closed.append(self.name))
    results = swsearch.search(["MKV"], path, checkpoint=tmp_path / "folder", engine=cpu)
    for _ in range(2):
        with pytest.raises(InputError, match="contains files"):
            _ = results.job
    assert len(closed) == 2
