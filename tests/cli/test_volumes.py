"""Databases in volumes on the command line: made by ``db build`` and ``db split``, taken wherever a database is."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import pytest

from support.command_line import fails, run
from support.databases import names
from support.db_helpers import HBA, HBB
from support.samples import sample
from swsearch import report

CPU = ("--engine", "cpu", "--threads", "1", "--quiet")
FORMATS = [kind.key for kind in report.OUTPUT_FORMATS if not kind.writer.is_single_query]


def succeeds(folder: Path, *words: object, **options: str) -> tuple[str, str]:
    """Run a command in a folder; return what it prints, and its messages."""
    done = run(*words, cwd=folder, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def entries(seed: int, n: int) -> str:
    """Write relatives of two proteins, many of them the same, some parts in lower case, and strangers."""
    pick = random.Random(seed)

    def letters(number: int) -> str:
        if number % 3:
            return "".join(pick.choices("ACDEFGHIKLMNPQRSTVWY", k=pick.randint(5, 150)))
        start = pick.choice([0, 0, 20])
        return (HBA, HBB)[number % 2][start:90] + "qqqqqqqqqq" * (number % 4 == 0) + HBA[10:60] * (number % 9 == 0)

    return "".join(f">s{seed}_{number} protein {number}\n{letters(number)}\n" for number in range(n))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make one database under one name in three folders: a file, volumes that were built, and others by a split."""
    found = {kind: tmp_path_factory.mktemp(kind) for kind in ("file", "built", "split")}
    for folder in found.values():
        (folder / "queries.fasta").write_text(f">a\n{HBA}\n>b second\n{HBB.lower()}\n>none\nWWW\n")
        for seed, n in ((1, 150), (2, 40)):
            (folder / f"{seed}.fasta").write_text(entries(seed, n))
        (folder / "both.fasta").write_text(entries(1, 150) + entries(2, 40))
        (folder / "ids").write_text("".join(f"s1_{number}\n" for number in range(0, 150, 2)))
    make = ("db", "build", "1.fasta", "2.fasta", "--mask", "tantan", "-o", "db.h5", "--progress", "none")
    succeeds(found["file"], *make)
    size = ("--volume-size", "60K", "--progress", "none")
    for folder, words in (
        (found["built"], (*make, *size)),
        (found["split"], ("db", "split", found["file"] / "db.h5", "-o", "db.h5", *size)),
    ):
        assert "swsearch: db.h5: 3 volumes, 190 subjects, " in succeeds(folder, *words)[1]
    return found


OPTIONS = {
    "fitted": "",
    "published, ties": "--statistics published --max-hits 7 --subject-mask none",
    "several alignments": "--max-alignments 3 --subject-mask lower",
    "identifiers": "--statistics published --include-ids ids --min-query-coverage 40 --query-mask lower",
    "iterations": "--iterations 2",
    "global": "--mode global --sort score",
    "semiglobal": "--mode semiglobal",
}


@pytest.mark.parametrize("case", sample(OPTIONS, lambda case: case in ("identifiers", "semiglobal")))
def test_a_search_of_volumes_writes_the_bytes_of_a_search_of_one_file(folders: dict[str, Path], case: str) -> None:
    formats = [name for name in FORMATS if case != "iterations" or name in ("6", "0", "xml", "json", "parquet")]
    words = [word for name in formats for word in ("-o", f"o.{name}", "--outfmt", name)]
    written = []
    for folder in folders.values():
        succeeds(folder, "search", "queries.fasta", "db.h5", *words, *OPTIONS[case].split(), *CPU)
        written.append({name: without_run((folder / f"o.{name}").read_bytes()) for name in formats})
    assert written[1] == written[0] and written[2] == written[0]
    assert written[0]["6"].count(b"\n") > 5


def without_run(page: bytes) -> bytes:
    """A page without what it says of the run, and the checksum of the database's own file or of the manifest."""
    page = re.sub(rb'<section id="run".*?</section>', b"", page, flags=re.DOTALL)
    return re.sub(rb"SHA-256, database.*?[0-9a-f]{64}", b"", page)


def test_several_subjects_are_one_database(folders: dict[str, Path]) -> None:
    folder = folders["file"]

    def hits(*subjects: object, **options: str) -> str:
        words = ("--max-hits", "9", "--statistics", "published", *CPU)
        return succeeds(folder, "search", "queries.fasta", *subjects, *words, **options)[0]

    for number in (1, 2):
        succeeds(folder, "db", "build", f"{number}.fasta", "-o", f"part{number}.h5", "--quiet")
    split = ("db", "split", "part2.h5", "--volume-size", "8G", "-o", "part2.json", "--progress", "none")
    assert "swsearch: part2.json: 1 volume, 40 subjects, " in succeeds(folder, *split)[1]
    whole = hits("both.fasta")
    assert whole.count("\n") == 27
    for subjects in ("1.fasta 2.fasta", "part1.h5 part2.json", "1.fasta part2.h5"):
        assert hits(*subjects.split()) == whole
    assert hits("1.fasta", "-", input=(folder / "2.fasta").read_text()) == whole
    assert hits(*(folders["built"] / f"db.{number:03d}.h5" for number in range(3))) == hits("db.h5") != whole
    for name, subjects in (("one", "both.fasta"), ("two", "1.fasta 2.fasta")):
        succeeds(folder, "msa", "queries.fasta", *subjects.split(), "-o", name, "--iterations", "1", *CPU)
    assert len(names(folder / "one")) == 3
    for name in names(folder / "one"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        ("queries.fasta db.h5 db.001.h5", 2, "db.001.h5: is given twice"),
        ("db.h5 db.h5", 1, "db.h5: is a manifest of volumes, expected FASTA"),
    ],
)
def test_subjects_that_are_refused(folders: dict[str, Path], words: str, code: int, problem: str) -> None:
    fails(run("search", *words.split(), *CPU, cwd=folders["built"], input=""), code, problem)


def test_commands_that_take_a_database_take_a_manifest(folders: dict[str, Path], tmp_path: Path) -> None:
    file, built = folders["file"], folders["built"]
    fetched = [succeeds(folder, "db", "fetch", "db.h5", "s1_3", "s2_39")[0] for folder in (file, built)]
    assert fetched[0] == fetched[1] and fetched[0].count(">") == 2
    assert "db.h5: sound (3 volumes, " in succeeds(built, "db", "verify", "db.h5")[1]
    info = json.loads(succeeds(built, "db", "info", "db.h5", "--json")[0])
    assert [Path(each["path"]).name for each in info["volumes"]] == ["db.000.h5", "db.001.h5", "db.002.h5"]
    assert info["n_subjects"] == 190 and info["mask"] == "tantan"
    shown = succeeds(built, "db", "info", "db.h5")[0]
    assert "\nvolume 2\n" in shown and "\nsegment 2\n" in shown
    assert "volume" not in succeeds(file, "db", "info", "db.h5")[0]
    for words in ("align ./db.h5 1.fasta", "bench db.h5 1.fasta", "db build db.h5 -o x.h5"):
        fails(run(*words.split(), cwd=built), 1, "db.h5: is a manifest of volumes, expected FASTA")
    (tmp_path / "db.json").write_bytes((built / "db.h5").read_bytes())
    for words in (f"search {built / 'queries.fasta'} db.json", "db info db.json"):
        fails(run(*words.split(), cwd=tmp_path), 2, "db.json: volume db.000.h5 not found")


def test_volumes_are_appended_and_removed(folders: dict[str, Path], tmp_path: Path) -> None:
    for path in folders["built"].glob("db.*"):
        shutil.copy(path, tmp_path)
    (tmp_path / "new.fasta").write_text(">new\nMKVLAA\n")
    fails(run("db", "append", "db.h5", folders["built"] / "1.fasta", cwd=tmp_path), 1, "150 identifiers would each")
    said = succeeds(tmp_path, "db", "append", "db.h5", "new.fasta", "--progress", "none")[1]
    assert "swsearch: db.h5: now 191 subjects, " in said
    said = succeeds(tmp_path, "db", "remove", "db.h5", "new", "s1_3", "--progress", "none")[1]
    assert "db.h5: 2 removed; now 189 subjects, " in said
