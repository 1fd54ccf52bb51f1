"""A search that was ended at any moment goes on, and finds what it would have found; other folders are refused."""

import contextlib
import errno
import io
import itertools
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from Bio.Data.CodonTable import unambiguous_dna_by_id

import swsearch
from support.cases import random_codes
from support.serving import until
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.backends.local import LocalSession
from swsearch.db import build_database
from swsearch.errors import InputError, OptionError, OutputError, SwsearchWarning
from swsearch.inputs import read_queries
from swsearch.output_files import TemporaryFile
from swsearch.pipeline import batch
from swsearch.pipeline import checkpoint as checkpoints
from swsearch.pipeline.batch import QueryState
from swsearch.pipeline.checkpoint import Checkpoint
from swsearch.pipeline.criteria import Criteria
from swsearch.pipeline.null_models import NullModelFitter
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.ranking import QueryCandidates, RankedSubjects
from swsearch.pipeline.subjects import ProteinSubjects
from swsearch.profiles.json_profile import to_json_line

GENERATOR = np.random.default_rng(11)
SUBJECTS = [PROTEIN.decode(random_codes(GENERATOR, n, 20)) for n in GENERATOR.integers(20, 90, 80)]
QUERIES = [SUBJECTS[0][:40], "", SUBJECTS[1] + SUBJECTS[2], SUBJECTS[3][3:], SUBJECTS[4], SUBJECTS[5][:30]]

TEN = [("s", "MKVW")] * 10
OPTIONS = SearchOptions(statistics="none", evalue=None)


@pytest.fixture(scope="module")
def database():
    with Database.from_records(SUBJECTS) as opened:
        yield opened


@pytest.fixture(autouse=True)
def written_at_once(monkeypatch):
    monkeypatch.setattr(checkpoints, "SAVE_SECONDS", 0)


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 60)
    monkeypatch.setattr(batch, "FIRST_GROUP_RESIDUES", (60,))
    monkeypatch.setattr(batch, "QUERY_RESIDUES", 0)


@pytest.fixture
def selected(monkeypatch):
    """How many queries were scored, group by group."""
    found = []
    select = LocalSession.select

    def watched(self, prepared):
        found.append(len(prepared.queries))
        return select(self, prepared)

    monkeypatch.setattr(LocalSession, "select", watched)
    return found


def lines(database, engine, folder=None, queries=QUERIES, **options):
    """A report, and the profiles that go on."""
    stream = io.StringIO()
    chosen = {"statistics": "published", "max_hits": 5, "evalue": 1e6} | options
    results = list(swsearch.search(queries, database, engine=engine, checkpoint=folder, **chosen))
    swsearch.write(results, stream, "jsonl")
    profiles = [result.next_profile for result in results]
    return stream.getvalue() + "".join("" if each is None else to_json_line(each) for each in profiles)


def some(*scores):
    return QueryCandidates(RankedSubjects(np.array(scores, dtype=np.int64), np.arange(len(scores))), 5)


def opened(folder, n_queries=9, **options):
    with Database.from_records(TEN) as ten:
        subjects = ProteinSubjects(ten, "none")
        queries = read_queries([("q", "MKVW")] * n_queries, PROTEIN)
        chosen = replace(OPTIONS, **options)
        return Checkpoint(folder, queries, Criteria.from_options(chosen, subjects), subjects, None)


def save(kept, first, selections):
    states = [QueryState(first + k, kept._queries[first + k], each) for k, each in enumerate(selections)]
    kept.save(states, kept._subjects)


def load(kept, first, count):
    """The scores of queries in a row; None where one of them is to be searched."""
    states = [QueryState(place, kept._queries[place]) for place in range(first, first + count)]
    found = {state.index: state.selection for batch in kept.resume(states) for state in batch.states}
    assert sorted(found) == [*range(first, first + count)]
    if None in found.values():
        return None
    return [found[place].candidates.scores.tolist() for place in sorted(found)]


def files_of(folder):
    return sorted(path.name for path in folder.glob("queries-*"))


CODONS = {letter: codon for codon, letter in unambiguous_dna_by_id[1].forward_table.items()}
DNA = ["".join(CODONS[letter] for letter in each) for each in SUBJECTS[:40]]
DNA_QUERIES = [("d1", DNA[0]), ("d2", "AC"), ("d3", f"{DNA[1][:40]}A{DNA[1][40:]}"), ("d4", DNA[2])]


LETTERS = "ACDEFGHIKLMNPQRSTVWY"
PARENTS = ["".join(GENERATOR.choice(list(LETTERS), 150)) for _ in range(4)]
FAMILY_QUERIES = [PARENTS[0], "", PARENTS[1][:100], PARENTS[2], SUBJECTS[4], PARENTS[3]]


@pytest.fixture(scope="module")
def relatives(cpu):
    """A database with families, in which iterations find more than one search."""
    draw, found = np.random.default_rng(3), []
    for parent in PARENTS * 3:
        chain = [parent]
        for _ in range(4):
            chain.append("".join(each if draw.random() > 0.35 else LETTERS[draw.integers(20)] for each in chain[-1]))
        found += chain[1:]
    with Database.from_records([*SUBJECTS[:40], *found]) as made:
        yield made


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genome")
    (folder / "dna.fasta").write_text("".join(f">d{k}\n{'ACGTTGCAAC' * 4}{each}\n" for k, each in enumerate(DNA)))
    build_database(folder / "dna.fasta", folder / "dna.h5", translate=True)
    with Database.open(folder / "dna.h5") as made:
        yield made


FITTED = {"statistics": "fitted", "evalue": 10}

SEARCHES = {
    "published": ("database", QUERIES, {}),
    "fitted": ("database", QUERIES, FITTED),
    "global": ("database", QUERIES, {"mode": "global", "statistics": "none", "evalue": None}),
    "distribution": ("database", QUERIES, {"distribution": True}),
    "aligned": ("database", QUERIES, {"min_identity": 40}),
    "several": ("database", QUERIES, {"max_alignments": 3}),
    "by score": ("database", QUERIES, {"sort": "score"}),
    "translated, filtered": ("database", DNA_QUERIES, FITTED | {"translate": True, "min_identity": 20}),
    "frame shifts": ("database", DNA_QUERIES, FITTED | {"translate": True, "frame_shift": 15, "min_identity": 20}),
    "genome": ("genome", QUERIES, FITTED),
    "genome, filtered": ("genome", QUERIES, {"min_identity": 30}),
    "genome, translated": ("genome", DNA_QUERIES, {"translate": True}),
    "iterated": ("relatives", FAMILY_QUERIES, FITTED | {"iterations": 3, "keep_profiles": True}),
    "iterated, filtered": ("relatives", FAMILY_QUERIES, {"evalue": 1, "iterations": 3, "min_identity": 30}),
    "one iteration": ("relatives", FAMILY_QUERIES, FITTED | {"keep_profiles": True}),
}
"""Name of the database, queries and options of searches of every kind."""


@pytest.mark.parametrize("case", SEARCHES)
def test_what_is_kept_gives_the_same_bytes(tmp_path, request, cpu, small_groups, selected, case):
    name, queries, options = SEARCHES[case]
    subjects = request.getfixturevalue(name)
    expected = lines(subjects, cpu, queries=queries, **options)
    n_groups = len(selected)
    assert n_groups > 2
    assert lines(subjects, cpu, tmp_path / "new", queries, **options) == expected
    n_scored = len(selected)
    assert options.get("iterations") or n_scored == 2 * n_groups
    assert lines(subjects, cpu, tmp_path / "new", queries, **options) == expected
    assert len(selected) == n_scored  # nothing was scored again


def test_iterations_find_more(relatives, cpu):
    results = list(swsearch.search(FAMILY_QUERIES, relatives, engine=cpu, iterations=3))
    assert {len(result.steps) for result in results} == {1, 2, 3}
    assert max(result.steps[1].new for result in results if len(result.steps) == 3) > 0


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("case", SEARCHES)
def test_killed_after_any_number_of_files_it_goes_on(
    tmp_path, request, cpu, small_groups, selected, monkeypatch, case
):
    """Killed again and again, a file further on each time."""
    name, queries, options = SEARCHES[case]
    subjects = request.getfixturevalue(name)
    expected = lines(subjects, cpu, queries=queries, **options)
    write, left = checkpoints._write, [0]

    def killing(path, data):
        write(path, data)
        left[0] -= 1
        if not left[0]:
            raise Killed

    monkeypatch.setattr(checkpoints, "_write", killing)
    times, found, kept = 0, None, []
    while found is None:
        left[0] = 2
        with contextlib.suppress(Killed):
            found = lines(subjects, cpu, tmp_path, queries, **options)
        times += 1
        assert times < 60
        after = files_of(tmp_path)
        assert found is not None or not kept or after[-1] > kept[-1]
        kept = after
    assert found == expected
    assert times > 2


def test_what_was_scored_and_not_yet_rated_is_not_scored_again(tmp_path, database, cpu, small_groups, selected):
    expected = lines(database, cpu, **FITTED)
    n_groups = len(selected)

    def refuse(*_):
        raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(NullModelFitter, "fit_pairs", refuse)
        with pytest.raises(Killed):
            lines(database, cpu, tmp_path, **FITTED)
    kept = files_of(tmp_path)
    assert kept
    del selected[:]
    assert lines(database, cpu, tmp_path, **FITTED) == expected
    assert len(selected) == n_groups - len(kept)
    assert not {*kept} & {*files_of(tmp_path)}  # all is rated now


def test_what_was_scored_does_not_need_the_copies_again(tmp_path, database, cpu, monkeypatch):
    expected = lines(database, cpu, tmp_path, **FITTED)
    monkeypatch.setattr(NullModelFitter, "fit_queries", None)
    monkeypatch.setattr(NullModelFitter, "fit_pairs", None)
    assert lines(database, cpu, tmp_path, **FITTED) == expected


def test_a_search_that_its_caller_leaves_goes_on(tmp_path, database, cpu, small_groups, selected):
    expected = lines(database, cpu)
    del selected[:]
    results = swsearch.search(QUERIES, database, engine=cpu, checkpoint=tmp_path, statistics="published")
    next(results)
    results.close()
    assert selected[0] == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"lock", "manifest.json", "queries-000000001"}
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
        again.search.restored = restored.append
        list(again)
        assert sum(counted) == sum(restored) == total


def test_groups_may_be_cut_otherwise(tmp_path, database, cpu, monkeypatch, selected):
    expected = lines(database, cpu)
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 60)
    assert lines(database, cpu, tmp_path) == expected
    (tmp_path / files_of(tmp_path)[-1]).unlink()
    del selected[:]
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 160)
    assert lines(database, cpu, tmp_path) == expected
    assert selected == [1]  # the others of its group are there
    monkeypatch.setattr(batch, "GROUP_RESIDUES", 1)
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
    groups_of_queries = [(0, [some(5, 4), some()]), (2, [some(7)]), (3, [some(8, 6, 1)])]
    scored = []

    def found_in(folder):
        """Search as a search does; scoring takes no engine."""
        found = []
        with opened(folder) as kept:
            for first, group in groups_of_queries:
                taken = load(kept, first, len(group))
                if taken is None:
                    scored.append(first)
                    save(kept, first, group)
                found += taken or [each.candidates.scores.tolist() for each in group]
        return found

    killer = Killer(monkeypatch)
    expected = found_in(tmp_path / "undisturbed")
    for step in itertools.count(1):
        folder = tmp_path / str(step)
        del scored[:]
        killer.left = step
        with contextlib.suppress(Killed):
            assert found_in(folder) == expected
        if killer.left:
            break
        killer.left = None
        kept = len(files_of(folder))
        assert len(scored) - kept in (0, 1)
        del scored[:]
        assert found_in(folder) == expected
        assert len(scored) == len(groups_of_queries) - kept
        assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    assert step == 1 + (1 + len(groups_of_queries)) * 4  # of each file: its bytes, its folder, before and after


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
    kept = len(files_of(tmp_path))
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
        save(kept, 0, [some(5, 4), some()])
        save(kept, 2, [some(7)])
    path = tmp_path / "queries-000000001"
    path.write_bytes(damaged(path.read_bytes())[how])
    with pytest.warns(SwsearchWarning, match=r"queries-000000001 is damaged .* searching its queries again"):
        kept = opened(tmp_path)
        assert kept.n_finished == (1 if how in ("empty", "zeros") else 3)  # nobody knows whose results it had
        assert load(kept, 0, 2) is None
    with kept:
        assert load(kept, 0, 2) is None  # told once
        assert load(kept, 2, 1) == [[7]]
        save(kept, 0, [some(5, 4), some()])
    with opened(tmp_path) as kept:
        assert load(kept, 0, 3) == [[5, 4], [], [7]]
        assert files_of(tmp_path) == ["queries-000000002", "queries-000000003"]


@pytest.mark.parametrize("case", ["genome, filtered", "iterated", "frame shifts"])
def test_damage_anywhere_is_noticed(tmp_path, request, cpu, small_groups, case):
    name, queries, options = SEARCHES[case]
    subjects = request.getfixturevalue(name)
    expected = lines(subjects, cpu, tmp_path / "kept", queries, **options)
    draw = np.random.default_rng(1)
    for k, file in enumerate(files_of(tmp_path / "kept")):
        folder = tmp_path / str(k)
        shutil.copytree(tmp_path / "kept", folder)
        raw = bytearray((folder / file).read_bytes())
        raw[draw.integers(len(raw))] ^= 1 << int(draw.integers(8))
        (folder / file).write_bytes(raw)
        with pytest.warns(SwsearchWarning, match="is damaged"):
            assert lines(subjects, cpu, folder, queries, **options) == expected


def test_stored_results_that_are_damaged_are_refused(tmp_path):
    with opened(tmp_path) as kept:
        save(kept, 0, [some(5, 4), some()])
    path = tmp_path / "queries-000000001"
    path.write_bytes(damaged(path.read_bytes())["cut"])
    with (
        opened(tmp_path) as kept,
        pytest.warns(SwsearchWarning, match="damaged"),
        pytest.raises(OutputError, match="stored results of queries 1 to 2 are damaged; search them again"),
    ):
        list(kept.read_stored([0, 1]))


def test_a_file_of_other_queries_or_of_another_checkpoint_is_not_used(tmp_path):
    with opened(tmp_path / "one") as one, opened(tmp_path / "two", max_hits=7) as two:
        save(one, 0, [some(1)])
        save(two, 0, [some(1)])
        save(two, 1, [some(2)])
    shutil.copy(tmp_path / "two" / "queries-000000002", tmp_path / "one")
    shutil.copy(tmp_path / "one" / "queries-000000001", tmp_path / "one" / "queries-000000003")
    with pytest.warns(SwsearchWarning, match="its checksum differs") as told:
        kept = opened(tmp_path / "one")
    assert len(told) == 2
    with kept:
        assert load(kept, 0, 1) == [[1]]
        assert load(kept, 1, 1) is None


def test_a_manifest_that_was_edited_makes_nothing_of_another_search_usable(tmp_path):
    with opened(tmp_path) as kept:
        save(kept, 0, [some(1)])
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"max_hits": 500', '"max_hits": 7'))
    with pytest.raises(InputError, match="max_hits was 7, is 500"):
        opened(tmp_path)
    with pytest.warns(SwsearchWarning, match="checksum differs"), opened(tmp_path, max_hits=7) as kept:
        assert load(kept, 0, 1) is None


def test_a_folder_of_the_first_format_is_refused(tmp_path):
    opened(tmp_path).close()
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(InputError, match="belongs to another search: format was 1, is 2; use its inputs and options"):
        opened(tmp_path)


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
        saving = threading.Thread(target=lambda: [save(kept, n, [some(n)]) for n in range(5)])
        saving.start()
        for n in range(5):
            found = None
            while found is None:
                alive = saving.is_alive()
                found = load(kept, n, 1)
                assert alive or found is not None
            assert found == [[n]]
        saving.join()


def test_a_file_system_without_locks_will_do(tmp_path, monkeypatch):
    def refuse(number, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(checkpoints.fcntl, "flock", refuse)
    with opened(tmp_path) as kept:
        save(kept, 0, [some(1)])
        assert load(kept, 0, 1) == [[1]]


def test_what_is_kept_within_a_second_is_in_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SAVE_SECONDS", 1e9)
    with opened(tmp_path) as kept:
        kept._written_at = checkpoints.time.monotonic()
        for n in range(5):
            save(kept, n, [some(n)])
            save(kept, n, [some(n, n)])
        assert files_of(tmp_path) == []
    assert files_of(tmp_path) == ["queries-000000001"]
    assert load(opened(tmp_path), 0, 5) == [[n, n] for n in range(5)]


def test_files_are_read_once_however_queries_lie_in_them(tmp_path, monkeypatch):
    with opened(tmp_path) as kept:
        for n in (3, 0, 2, 1):
            save(kept, n, [some(n)])
            save(kept, n + 4, [some(n + 4)])
    hold, times = Checkpoint._read_file, []
    monkeypatch.setattr(Checkpoint, "_read_file", lambda self, name: times.append(name) or hold(self, name))
    with opened(tmp_path) as kept:
        assert [load(kept, n, 1) for n in range(8)] == [[[n]] for n in range(8)]
    assert sorted(times) == files_of(tmp_path)


def test_files_are_read_once_for_queries_that_are_asked_for_together(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "CACHE_BYTES", 1)  # nothing is held from one group to the next
    with opened(tmp_path) as kept:
        for n in (3, 0, 2, 1):
            batch = [QueryState(place, kept._queries[place], some(place)) for place in (n, n + 4)]
            kept.save(batch, kept._subjects)
    hold, times = Checkpoint._read_file, []
    monkeypatch.setattr(Checkpoint, "_read_file", lambda self, name: times.append(name) or hold(self, name))
    with opened(tmp_path) as kept:
        assert load(kept, 0, 8) == [[n] for n in range(8)]
    assert sorted(times) == files_of(tmp_path)


def test_what_is_saved_is_on_the_disk_soon_though_nothing_else_is_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SAVE_SECONDS", 0.2)
    with opened(tmp_path) as kept:
        save(kept, 0, [some(5)])
        save(kept, 1, [some(7)])
        assert len(files_of(tmp_path)) == 1
        until(lambda: len(files_of(tmp_path)) == 2)
        monkeypatch.setattr(checkpoints, "_write", fails)
        save(kept, 2, [some(9)])
        until(lambda: kept._error is not None)
        with pytest.raises(OutputError, match="cannot be written: No space left on device"):
            save(kept, 3, [some(9)])


def fails(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_ends_a_search_is_told_before_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SAVE_SECONDS", 60)
    with (
        pytest.warns(SwsearchWarning, match="cannot be written"),
        pytest.raises(ZeroDivisionError),
        opened(tmp_path) as kept,
    ):
        save(kept, 0, [some(5)])
        save(kept, 1, [some(7)])
        monkeypatch.setattr(checkpoints, "_write", fails)
        raise ZeroDivisionError
    assert len(files_of(tmp_path)) == 1


def test_a_file_that_cannot_be_opened_now_stays(tmp_path, monkeypatch):
    with opened(tmp_path) as kept:
        save(kept, 0, [some(5)])
    before, real = files_of(tmp_path), Path.open

    def busy(self, *rest, **options):
        if self.name.startswith("queries-"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(self, *rest, **options)

    monkeypatch.setattr(Path, "open", busy)
    with pytest.raises(OutputError, match="cannot be opened: Too many open files"):
        opened(tmp_path)
    monkeypatch.undo()
    assert files_of(tmp_path) == before


def test_a_profile_of_other_sequences_is_another_search(tmp_path, database):
    asked = {"engine": "cpu", "threads": 1, "iterations": 2, "keep_profiles": True}
    profile = next(swsearch.search(QUERIES[2], database, **asked)).next_profile
    names = [profile.alignment.identifiers[0], *(f"other {name}" for name in profile.alignment.identifiers[1:])]
    assert len(names) > 1
    renamed = replace(profile, alignment=replace(profile.alignment, identifiers=names))
    list(swsearch.search(profile, database, checkpoint=tmp_path, **asked))
    with pytest.raises(InputError, match="belongs to another search: queries was"):
        next(swsearch.search(renamed, database, checkpoint=tmp_path, **asked))


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
        save(kept, 0, [some(1), some(2), some(3)])
        save(kept, 1, [some(7)])
        save(kept, 5, [some(4)])
        assert kept.n_finished == 4
        assert load(kept, 0, 4) is None
    (tmp_path / "queries-000000005-000000001").touch()
    (tmp_path / "queries-7").touch()
    with opened(tmp_path) as kept:
        assert kept.n_finished == 4
        assert load(kept, 1, 2) == [[7], [3]]
        save(kept, 0, [some(1), some(2), some(3)])
        assert files_of(tmp_path)[:2] == ["queries-000000003", "queries-000000004"]  # two have nothing that counts


@pytest.mark.parametrize(("seconds", "moment"), [(0, "_write"), (1.0, "save")])
def test_a_killed_process_leaves_what_it_wrote(tmp_path, seconds, moment):
    """It ends at once: as soon as a file is there, or as something was saved, and again."""
    (tmp_path / "q.fasta").write_text("".join(f">q{k}\n{each}\n" for k, each in enumerate(SUBJECTS[:12])))
    (tmp_path / "s.fasta").write_text("".join(f">s{k}\n{each}\n" for k, each in enumerate(SUBJECTS)))
    program = """
import os, sys, swsearch
from swsearch.pipeline import batch, checkpoint
checkpoint.SAVE_SECONDS = float(sys.argv[4])
batch.GROUP_RESIDUES = 60
home = checkpoint if sys.argv[5] == "_write" else checkpoint.Checkpoint
real, left = getattr(home, sys.argv[5]), int(sys.argv[1])
def killing(*given):
    global left
    real(*given)
    left -= 1
    if not left:
        os.abort()
setattr(home, sys.argv[5], killing)
asked = {"engine": "cpu", "threads": 1, "iterations": 2, "evalue": 1e3}
results = swsearch.search("q.fasta", "s.fasta", checkpoint=sys.argv[2], **asked)
swsearch.write(results, sys.argv[3], "6")
"""

    def run(left, folder):
        words = [sys.executable, "-c", program, str(left), folder, f"{folder}.tsv", str(seconds), moment]
        return subprocess.run(words, cwd=tmp_path, check=False).returncode

    assert run(0, "undisturbed") == 0
    codes = [run(left, "killed") for left in (3, 7, 0)]
    assert codes == [-6, -6, 0]
    assert (tmp_path / "killed.tsv").read_bytes() == (tmp_path / "undisturbed.tsv").read_bytes()


def test_what_a_killed_process_left_is_removed(tmp_path):
    opened(tmp_path).close()
    left = TemporaryFile(tmp_path / "queries-000000009")
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
            _ = results.search
    assert len(closed) == 2
