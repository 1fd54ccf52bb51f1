"""Databases in volumes on the command line: made by ``db build`` and ``db split``, taken wherever a database is."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from support.command_line import fails, run
from support.db_helpers import HBA, HBB
from support.samples import sample

PUBLISHED = ("--statistics", "published")
CPU = ("--engine", "cpu", "--threads", "1", "--quiet")


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
        (folder / "ids").write_text("".join(f"s1_{number}\n" for number in range(0, 150, 2)))
    make = ("db", "build", "1.fasta", "2.fasta", "--mask", "tantan", "-o")
    size = ("--volume-size", "38K")
    assert run(*make, "db.h5", "--quiet", cwd=found["file"]).returncode == 0
    done = run(*make, "db.h5", *size, "--progress", "none", cwd=found["built"])
    assert done.returncode == 0 and "swsearch: db.h5: 3 volumes, 190 subjects, " in done.stderr
    whole = found["file"] / "db.h5"
    done = run("db", "split", whole, *size, "-o", "db.h5", "--progress", "none", cwd=found["split"])
    assert done.returncode == 0 and "swsearch: db.h5: 3 volumes, 190 subjects, " in done.stderr
    return found


OPTIONS = {
    "fitted": [],
    "published, ties": ["--statistics", "published", "--max-hits", "7", "--subject-mask", "none"],
    "several alignments": ["--max-alignments", "3", "--subject-mask", "lower"],
    "identifiers": [
        "--statistics",
        "published",
        "--include-ids",
        "ids",
        "--min-query-coverage",
        "40",
        "--query-mask",
        "lower",
    ],
    "iterations": ["--iterations", "2"],
    "global": ["--mode", "global", "--sort", "score"],
}


@pytest.mark.parametrize("case", sample(list(OPTIONS), lambda case: case == "identifiers"))
def test_the_same_bytes_as_one_file(folders: dict[str, Path], case: str) -> None:
    outputs = {"6": "o.tsv", "0": "o.txt", "xml": "o.xml", "json": "o.json", "parquet": "o.parquet"}
    words = [word for kind, name in outputs.items() for word in ("-o", name, "--outfmt", kind)]
    written = []
    for folder in folders.values():
        done = run("search", "queries.fasta", "db.h5", *words, *OPTIONS[case], *CPU, cwd=folder)
        assert done.returncode == 0, done.stderr
        written.append({name: (folder / name).read_bytes() for name in outputs.values()})
    # what was built in each folder names its own input files, which are the same
    assert written[1] == written[0] and written[2] == written[0]
    assert written[0]["o.tsv"].count(b"\n") > 5


def test_several_subjects_are_one_database(folders: dict[str, Path]) -> None:
    def hits(*subjects: object) -> str:
        done = run(
            "search",
            folders["file"] / "queries.fasta",
            *subjects,
            "--max-hits",
            "9",
            *PUBLISHED,
            *CPU,
            cwd=folders["file"],
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    whole = hits("1.fasta", "2.fasta")
    assert whole.count("\n") == 27
    (folders["file"] / "both.fasta").write_text(entries(1, 150) + entries(2, 40))
    assert hits("both.fasta") == whole
    for number in (1, 2):
        make = ("db", "build", f"{number}.fasta", "-o", f"part{number}.h5", "--quiet")
        assert run(*make, cwd=folders["file"]).returncode == 0
    split = ("db", "split", "part2.h5", "--volumes", "2", "-o", "part2.json", "--quiet")
    assert run(*split, cwd=folders["file"]).returncode == 0
    assert hits("part1.h5", "part2.json") == hits("1.fasta", "part2.h5") == whole
    masked = [folders["built"] / f"db.{number:03d}.h5" for number in range(3)]
    assert hits(*masked) == hits("db.h5") != whole


def test_msa_of_volumes_and_of_several(folders: dict[str, Path], tmp_path: Path) -> None:
    for name, subjects in (("one", ["both.fasta"]), ("two", ["1.fasta", "2.fasta"])):
        (folders["file"] / "both.fasta").write_text(entries(1, 150) + entries(2, 40))
        words = ("msa", "queries.fasta", *subjects, "-o", tmp_path / name, "--iterations", "1", *CPU)
        assert run(*words, cwd=folders["file"]).returncode == 0
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert len(files) == 3
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("subjects", "code", "parts"),
    sample(
        [
            (["db.h5", "db.h5"], 2, ["db.h5 is given twice; name each file once"]),
            (["db.h5", "./db.h5"], 2, ["db.h5 and ./db.h5 are the same file, which is given twice"]),
            (["db.h5", "db.001.h5"], 2, ["db.001.h5", "is given twice"]),
            (["1.fasta", "1.fasta"], 2, ["1.fasta is given twice"]),
            (["-", "db.h5", "-"], 1, ["subjects: stdin is given twice but can be read only once"]),
            (["db.h5", "none.h5"], 2, ["none.h5: no such database"]),
            (["db.h5", "none"], 2, ["none: no such file"]),
            (["db.h5", ""], 1, ["subjects: the name is empty"]),
        ],
        lambda case: case[2][0].startswith(("db.h5 and", "db.001", "subjects: stdin", "none.h5")),
    ),
)
def test_subjects_that_are_refused(
    folders: dict[str, Path], subjects: list[str], code: int, parts: list[str]
) -> None:
    fails(run("search", "queries.fasta", *subjects, *CPU, cwd=folders["built"], input=""), code, *parts)


def test_stdin_for_queries_and_one_of_the_subjects(folders: dict[str, Path]) -> None:
    fails(run("search", "-", "db.h5", "-", *CPU, cwd=folders["built"], input=""), 1, "cannot both come from stdin")
    text = (folders["file"] / "2.fasta").read_text()
    done = run("search", "queries.fasta", "1.fasta", "-", *PUBLISHED, *CPU, cwd=folders["file"], input=text)
    wanted = run("search", "queries.fasta", "1.fasta", "2.fasta", *PUBLISHED, *CPU, cwd=folders["file"])
    assert done.stdout == wanted.stdout != ""


def test_commands_that_take_a_database_take_a_manifest(folders: dict[str, Path]) -> None:
    file, built = folders["file"], folders["built"]
    fetched = [run("db", "fetch", "db.h5", "s1_3", "s2_39", cwd=folder).stdout for folder in (file, built)]
    assert fetched[0] == fetched[1] and fetched[0].count(">") == 2
    done = run("db", "verify", "db.h5", cwd=built)
    assert done.returncode == 0 and "db.h5: sound (3 volumes, " in done.stderr
    info = json.loads(run("db", "info", "db.h5", "--json", cwd=built).stdout)
    assert [Path(each["path"]).name for each in info["volumes"]] == ["db.000.h5", "db.001.h5", "db.002.h5"]
    assert info["n_subjects"] == 190 and info["mask"] == "tantan"
    shown = run("db", "info", "db.h5", cwd=built).stdout
    assert "\nvolume 2\n" in shown and "\nsegment 2\n" in shown
    assert "volume" not in run("db", "info", "db.h5", cwd=file).stdout
    fails(run("db", "append", "db.h5", "1.fasta", cwd=built), 2, "db.h5: is a manifest of volumes")
    for words in (["search", "db.h5", "db.h5"], ["align", "./db.h5", "1.fasta"], ["bench", "db.h5", "1.fasta"]):
        fails(run(*words, cwd=built), 1, "db.h5: is a manifest of volumes, expected FASTA")
    fails(run("db", "build", "db.h5", "-o", "x.h5", cwd=built), 1, "db.h5: is a manifest of volumes, expected FASTA")


def test_a_manifest_whose_volume_is_not_there(folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "db.json").write_bytes((folders["built"] / "db.h5").read_bytes())
    for words in (["search", folders["built"] / "queries.fasta", "db.json"], ["db", "info", "db.json"]):
        fails(run(*words, cwd=tmp_path), 2, "db.json: volume db.000.h5 not found")


@pytest.mark.parametrize(
    ("words", "parts"),
    sample(
        [
            ([], ["--volume-size, --volumes: got neither, expected one of them"]),
            (["--volume-size", "1G", "--volumes", "2"], ["--volume-size, --volumes: got both"]),
            (["--volume-size", "big"], ["--volume-size: got 'big', expected a size such as 512M or 2G"]),
            (["--volumes", "0"], ["volumes: got 0, expected an integer >= 1"]),
            (["--volumes", "1000"], ["volumes: got 1000, expected an integer from 1 to 500"]),
            (["--volumes", "191"], ["volumes: got 191, expected 1 to 190, the number of subjects"]),
            (["--volume-size", "1G", "--memory", "1M"], ["memory: got 1048576"]),
        ],
        lambda case: case[0] in ([], ["--volumes", "191"]),
    ),
)
def test_splits_that_are_refused(folders: dict[str, Path], words: list[str], parts: list[str]) -> None:
    folder = folders["file"]
    before = sorted(path.name for path in folder.iterdir())
    fails(run("db", "split", "db.h5", "-o", "out.json", *words, cwd=folder), 1, *parts)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_build_warns_of_empty_records_and_counts_one_volume(tmp_path: Path) -> None:
    (tmp_path / "in.fasta").write_text(">a\nMKV\n>b\n>c\n")
    done = run("db", "build", "in.fasta", "-o", "out.json", "--volume-size", "8G", "--progress", "none", cwd=tmp_path)
    assert done.returncode == 0 and "warning: out.json: 2 records have no residues" in done.stderr
    assert "swsearch: out.json: 1 volume, 3 subjects, 3 residues" in done.stderr
