"""``swsearch-jackhmmer``: AlphaFold 3's command line, and Stockholm as AlphaFold 3 reads it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from support.command_line import fails, run

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
START = [sys.executable, "-c", "from swsearch.__main__ import jackhmmer; jackhmmer()"]
OPTIONS = ["--noali", "--F1", "0.0005", "--F2", "5e-05", "--F3", "5e-07", "--cpu", "8", "-N", "1", "-E", "0.0001",
           "--incE", "0.0001"]  # fmt: skip
SPECIES = re.compile(r"(?:tr|sp)\|[A-Z0-9]{6,10}\|[A-Z0-9]{1,10}_([A-Z0-9]{1,5})/\d+-\d+")


def jackhmmer(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    line = [*START, "--engine", "cpu", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=cwd)


def a3m_of(path: Path) -> dict[str, tuple[str, str]]:
    """Description and row by name, read by AlphaFold 3's rules: only ``-`` is a gap of the query."""
    rows: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    with path.open(encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line.startswith("#=GS"):
                name, feature, *text = line.split(maxsplit=3)[1:]
                descriptions |= {name: "".join(text)} if feature == "DE" else {}
            elif line and not line.startswith(("#", "//")):
                name, part = line.split(maxsplit=1)
                rows[name] = rows.get(name, "") + part
    assert descriptions.keys() <= rows.keys()
    query = next(iter(rows.values()))
    found = {}
    for name, row in rows.items():
        pairs = zip(query, row, strict=True)
        letters = [b if a != "-" else b.lower() for a, b in pairs if (a, b) != ("-", "-")]
        found[name] = descriptions.get(name, ""), "".join(letters).replace(".", "")
    return found


def check_rows(path: Path, query: str) -> dict[str, tuple[str, str]]:
    """Check that the first row is the query, and that all are as long without lower case."""
    found = a3m_of(path)
    assert next(iter(found.values()))[1] == query
    assert {sum(not letter.islower() for letter in row) for _, row in found.values()} == {len(query)}
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query and a database of relatives with odd names, and of others."""
    draw = random.Random(54)
    folder = tmp_path_factory.mktemp("jackhmmer")

    def letters(n: int) -> str:
        return "".join(draw.choices(LETTERS, k=n))

    def relative(of: str, share: float = 0.2) -> str:
        return "".join(draw.choice(LETTERS) if draw.random() < share else letter for letter in of)

    query = letters(120)
    twin = relative(query)
    headers = ["dup twice", "dup twice", "a/b/1-10 slashes", "#hash", "//slash x", "sel \x0b\u2028control", "lower x",
               "tr|A0A024|A0A024_HUMAN Some protein OS=Homo sapiens OX=9606", f"long {'d' * 3000}"]  # fmt: skip
    records = [("query itself", query), ("dup twice", twin), ("dup twice", twin)]
    records += [(header, relative(query)) for header in headers]
    records.append(("inserted x", f"{query[:60]}UXBZJO{query[60:]}"))
    records.append(("sp|P12345|X_MOUSE two domains", relative(query, 0.1) + letters(80) + relative(query, 0.1)))
    records += [(f"r{k}", letters(150)) for k in range(100)]
    records = [(header, row.lower() if header == "lower x" else row) for header, row in records]
    texts = [f">{header}\n{row}\n" for header, row in records]
    (folder / "db.fasta").write_text("".join(texts), encoding="utf-8")
    (folder / "windows.fasta").write_text("".join(texts), encoding="utf-8", newline="\r\n")
    (folder / "query.fasta").write_text(f">query\n{query[:80]}\n{query[80:]}\n")
    (folder / "other.fasta").write_text(f">query\n{letters(30).lower()}UX{'GAC' * 10}\n")
    assert run("db", "build", "db.fasta", "-o", "db.h5", "--quiet", cwd=folder).returncode == 0
    return folder


def sequence(path: Path) -> str:
    return "".join(path.read_text().split("\n")[1:]).upper()


def test_alphafold_reads_the_alignment(folder: Path, tmp_path: Path) -> None:
    stockholm, table = tmp_path / "out.sto", tmp_path / "out.tbl"
    for path in (stockholm, table):
        path.touch()  # as AlphaFold 3 does
    words = ["-o", "/dev/null", "-A", stockholm, *OPTIONS, "--tblout", table, "--seq_limit", "50"]
    done = jackhmmer(*words, "query.fasta", "db.h5", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    rows = check_rows(stockholm, sequence(folder / "query.fasta"))
    assert list(rows)[:2] == ["query", "query/1-120"] and len(rows) == 16
    assert {"a/b/1-10/1-120", "_slash/1-120", "_hash/1-120"} <= {
        re.sub(r"/\d+-(?=\d+$)", "/1-", each) for each in rows
    }
    assert sum(name.startswith("dup/") for name in rows) == 4
    assert any("uxbzjo" in row for _, row in rows.values())
    assert rows["query/1-120"][0] == "itself"
    descriptions = {text for text, _ in rows.values()}
    assert {"Some protein OS=Homo sapiens OX=9606", "d" * 3000} <= descriptions
    species = [found[1] for name in rows if (found := SPECIES.match(name))]
    assert sorted(species) == ["HUMAN", "MOUSE", "MOUSE"]  # two domains
    lines = [line.split(maxsplit=18) for line in table.read_text().splitlines() if not line.startswith("#")]
    assert {len(line) for line in lines} == {19} and len(lines) == 14
    evalues = [float(line[4]) for line in lines]
    assert evalues == sorted(evalues) and evalues[-1] <= 1e-4 and float(lines[0][5]) > 100
    assert {line[0] for line in lines} == {name.rpartition("/")[0] for name in rows if name != "query"}


def test_fasta_gives_the_same_as_a_database(folder: Path, tmp_path: Path) -> None:
    texts = []
    for place, name in enumerate(("db.h5", "windows.fasta")):
        path = tmp_path / f"{place}.sto"
        done = jackhmmer("-o", "/dev/null", "-A", path, *OPTIONS, "query.fasta", name, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        texts.append(path.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


def test_seq_limit_keeps_the_best_rows(folder: Path, tmp_path: Path) -> None:
    every = []
    for limit in (1, 3):
        path = tmp_path / "out.sto"
        words = ["-o", "/dev/null", "-A", path, *OPTIONS, "--seq_limit", limit, "query.fasta", "db.h5"]
        assert jackhmmer(*words, cwd=folder).stderr == ""
        every.append(list(check_rows(path, sequence(folder / "query.fasta"))))
        assert len(every[-1]) == limit
    assert every == [["query"], ["query", "query/1-120", every[1][2]]]


def test_a_query_without_hits_is_alone(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.sto"
    done = jackhmmer("-o", "/dev/null", "-A", path, *OPTIONS, "other.fasta", "db.h5", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(check_rows(path, sequence(folder / "other.fasta"))) == ["query"]


def test_the_table_goes_to_stdout_or_a_file(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    to_file = jackhmmer("-o", path, *OPTIONS, "query.fasta", "db.h5", cwd=folder)
    to_stdout = jackhmmer(*OPTIONS, "query.fasta", "db.h5", cwd=folder)
    assert (to_file.stdout, to_file.returncode, to_stdout.returncode) == ("", 0, 0)
    assert path.read_text(encoding="utf-8") == to_stdout.stdout


def test_comparisons_scale_evalues(folder: Path) -> None:
    def evalues(*words: str) -> list[float]:
        done = jackhmmer(*OPTIONS, *words, "query.fasta", "db.h5", cwd=folder)
        return [float(line.split()[4]) for line in done.stdout.splitlines() if not line.startswith("#")]

    usual, larger = evalues(), evalues("-Z", "115000", "--domZ", "1", "--domE", "1")
    assert larger == pytest.approx([1000 * each for each in usual[: len(larger)]], rel=0.02) and len(larger) > 5


def test_several_passes_find_as_much(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.sto"
    done = jackhmmer("-o", "/dev/null", "-A", path, "-N", "3", "query.fasta", "db.h5", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(check_rows(path, sequence(folder / "query.fasta"))) >= 15


def test_alphafold_is_told_of_seq_limit(tmp_path: Path) -> None:
    done = subprocess.run(
        [*START, "-h", "--seq_limit", "1"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "--seq_limit" in done.stdout and "--incE" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (["--chkhmm", "x", "query.fasta", "db.h5"], 1, ["has no option --chkhmm"]),
        (["-E", "x", "query.fasta", "db.h5"], 1, ["-E: got 'x', expected a number"]),
        (["-Z", "0", "query.fasta", "db.h5"], 1, ["got 0.0, expected a number > 0"]),
        (["query.fasta"], 1, ["DATABASE is missing"]),
        (["query.fasta", "none.h5"], 2, ["none.h5: no such database"]),
        (["none.fasta", "db.h5"], 1, ["none.fasta: no such file"]),
        (["-o", "out.sto", "query.fasta", "db.h5"], 1, ["got the same file twice among -o, -A and --tblout"]),
        (["--tblout", "db.h5", "query.fasta", "db.h5"], 6, ["db.h5: is one of the inputs"]),
        (["--tblout", "/nowhere/x.tbl", "query.fasta", "db.h5"], 6, ["the folder /nowhere does not exist"]),
        (["--tblout", "/dev/full", "query.fasta", "db.h5"], 6, ["cannot be written: No space left"]),
    ],
)
def test_failures_leave_no_alignment(folder: Path, words: list[str], code: int, parts: list[str]) -> None:
    before = sorted(folder.iterdir())
    fails(jackhmmer("-A", "out.sto", "-N", "1", "-o", "/dev/null", *words, cwd=folder), code, *parts)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("redirected", [">&-", ">/dev/full"])
def test_a_closed_or_full_stdout_fails(folder: Path, redirected: str) -> None:
    line = ["bash", "-c", f'exec "$@" {redirected}', "bash", *START, "--engine", "cpu", "-A", "out.sto", "-N", "1"]
    done = subprocess.run([*line, "query.fasta", "db.h5"], capture_output=True, text=True, check=False, cwd=folder)
    fails(done, 6, "error")
    assert not (folder / "out.sto").exists()


def test_the_command_is_installed() -> None:
    parser = ConfigParser()
    parser.read(Path(__file__).parents[2] / "setup.cfg")
    assert "swsearch-jackhmmer = swsearch.__main__:jackhmmer" in parser["options.entry_points"]["console_scripts"]


@pytest.mark.peer
def test_hmmbuild_reads_the_alignment(folder: Path, tmp_path: Path) -> None:
    if not shutil.which("hmmbuild"):
        pytest.skip("HMMER is not installed")
    path = tmp_path / "out.sto"
    jackhmmer("-o", "/dev/null", "-A", path, *OPTIONS, "query.fasta", "db.h5", cwd=folder)
    subprocess.run(["hmmbuild", "-o", "/dev/null", str(tmp_path / "x.hmm"), str(path)], check=True)
