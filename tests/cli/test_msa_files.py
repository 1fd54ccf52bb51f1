"""``swsearch msa --pair`` and ``--for``: rows joined by taxon, and files as predictors read them."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from support.command_line import run
from swsearch.cli import main

OPTIONS = ("--engine", "cpu", "--quiet", "--iterations", "1")
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
TAXA = {"one": (11, 12, 13, 14, 15, 16), "two": (14, 15, 16, 17, 18), "three": (16, 17)}
"""Taxa of the homologs of each chain: one row for each is in the database, two of 15."""
GREEDY, COMPLETE = [14, 15, 16, 17], [16]

Rows = list[tuple[str, str]]


def mutant(sequence: str, n: int, rng: random.Random) -> str:
    """A homolog: some residues replaced, one taken out, two put in."""
    letters = list(sequence)
    for place in rng.sample(range(len(letters)), n):
        letters[place] = rng.choice(LETTERS)
    del letters[20]
    letters.insert(40, rng.choice(LETTERS) + rng.choice(LETTERS))
    return "".join(letters)


@pytest.fixture(scope="module")
def chains() -> dict[str, str]:
    """Chains of a complex, by name."""
    rng = random.Random(54)
    return {name: "".join(rng.choices(LETTERS, k=length)) for name, length in zip(TAXA, (90, 80, 70), strict=True)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, chains: dict[str, str]) -> Path:
    """Files of queries, and homologs with headers of UniProt, of UniRef, and without taxa."""
    made, rng = tmp_path_factory.mktemp("chains"), random.Random(7)
    two = list(chains.items())[:2]
    for name, records in (("two", two), ("three", list(chains.items())), ("copies", [*two, ("again", two[0][1])])):
        (made / f"{name}.fasta").write_text("".join(f">{key} chain\n{text}\n" for key, text in records))
    (made / "single.fasta").write_text(f">one\n{chains['one']}\n>again\n{chains['one']}\n")
    texts = dict.fromkeys(("uniprot", "uniref", "plain"), "")
    for chain, (name, taxa) in enumerate(TAXA.items()):
        for k, taxid in enumerate((*taxa, 15)[: len(taxa) + (15 in taxa)]):
            accession, sequence = f"P{chain}{k:04}", mutant(chains[name], 8 if k < len(taxa) else 25, rng)
            texts["uniprot"] += f">sp|{accession}|X{taxid}_ABCDE Protein {name} OS=X y OX={taxid} PE=1\n{sequence}\n"
            texts["uniref"] += f">UniRef100_{accession} Protein n=1 Tax=X y TaxID={taxid} RepID=X\n{sequence}\n"
            texts["plain"] += f">{accession} Protein {name}\n{sequence}\n"
    for key, text in texts.items():
        (made / f"{key}.fasta").write_text(text)
    return made


def a3m_rows(text: str) -> Rows:
    """Header and letters of each row, one line each; all rows have the first one's columns."""
    lines = text.splitlines()
    rows = [(title[1:], row) for title, row in zip(lines[::2], lines[1::2], strict=True)]
    assert all(line.startswith(">") for line in lines[::2]) and rows[0][1].isupper()
    assert {len(columns(row)) for _, row in rows} == {len(rows[0][1])}
    return rows


def columns(row: str) -> str:
    """A row without what is inserted."""
    return "".join(letter for letter in row if not letter.islower())


def taxon(title: str) -> int | None:
    """The taxon of a header; None of a row of gaps."""
    words = [word.partition("=")[2] for word in title.split() if word.startswith(("OX=", "TaxID="))]
    assert words or title.startswith("no_hit/1-0")
    return int(words[0]) if words else None


@pytest.fixture
def write(folder: Path, tmp_path: Path) -> Callable[..., dict[str, bytes]]:
    """Run ``swsearch msa``; the files that it wrote, by name."""

    def files(queries: str, subjects: str, *options: str) -> dict[str, bytes]:
        done = run("msa", folder / f"{queries}.fasta", folder / subjects, "-o", tmp_path, *options, *OPTIONS)
        assert done.returncode == 0, done.stderr
        paths = [path for path in tmp_path.rglob("*") if path.is_file()]
        return {str(path.relative_to(tmp_path)): path.read_bytes() for path in sorted(paths)}

    return files


def check_pairs(rows: Sequence[Rows], chains: Sequence[str], taxa: list[int]) -> None:
    """Rows with the same place are of one taxon, all of the expected ones, best hits only; the first are queries."""
    assert [each[0][1] for each in rows] == list(chains)
    found = []
    for row in zip(*(each[1:] for each in rows), strict=True):
        names = {taxon(title) for title, _ in row} - {None}
        assert len(names) == 1, row
        for name, (title, letters) in zip(TAXA, row, strict=False):
            has_hit = max(names) in TAXA[name]
            assert (taxon(title) is not None) == has_hit == bool(letters.strip("-"))
            chain = chains[list(TAXA).index(name)]
            assert not has_hit or sum(map(str.__eq__, columns(letters), chain)) > 55
        found.append(max(names))
    assert sorted(found) == taxa


@pytest.mark.parametrize("subjects", ["uniprot.fasta", "uniref.fasta"])
@pytest.mark.parametrize(("queries", "strategy", "taxa"), [
    ("two", "greedy", [14, 15, 16]), ("two", "complete", [14, 15, 16]),
    ("three", "greedy", GREEDY), ("three", "complete", COMPLETE),
])  # fmt: skip
def test_rows_of_a_taxon_belong_together(
    write: Callable[..., dict[str, bytes]], chains: dict[str, str], subjects: str, queries: str, strategy: str,
    taxa: list[int],
) -> None:  # fmt: skip
    files = write(queries, subjects, "--pair", strategy)
    names = list(TAXA)[: 2 if queries == "two" else 3]
    assert sorted(files) == sorted(f"{name}.a3m" for name in names)
    rows = [a3m_rows(files[f"{name}.a3m"].decode()) for name in names]
    check_pairs(rows, [chains[name] for name in names], taxa)


def test_a_checkpoint_pairs_again(folder: Path, tmp_path: Path) -> None:
    words = ("msa", folder / "two.fasta", folder / "uniprot.fasta", "--pair", "greedy", *OPTIONS)
    kept = ("--checkpoint", tmp_path / "kept")
    for options in ((), ("--for", "boltz"), ("--for", "af3")):
        for place, more in (("plain", ()), ("first", kept), ("second", kept)):
            done = run(*words, "-o", tmp_path / f"{place}{options[-1:]}", *options, *more)
            assert done.returncode == 0, done.stderr
        texts = [
            [path.read_bytes() for path in sorted((tmp_path / f"{place}{options[-1:]}").iterdir())]
            for place in ("plain", "first", "second")
        ]
        assert texts[0] == texts[1] == texts[2] and len(texts[0]) == (1 if "af3" in options else 2)


def test_taxa_of_the_database(
    write: Callable[..., dict[str, bytes]], folder: Path, tmp_path: Path, chains: dict[str, str]
) -> None:
    table = tmp_path.parent / f"{tmp_path.name}.tsv"
    lines = [line.split() for line in (folder / "uniref.fasta").read_text().splitlines() if line.startswith(">")]
    table.write_text(
        "".join(f"{words[0].rpartition('_')[2]}\t{words[-2].removeprefix('TaxID=')}\n" for words in lines)
    )
    database = table.with_suffix(".h5")
    done = run("db", "build", folder / "plain.fasta", "-o", database, "--taxids", table, "--quiet")
    assert done.returncode == 0, done.stderr
    files = write("two", str(database), "--pair", "complete")
    assert [text.count(b">") for text in files.values()] == [4, 4]
    expected = write("two", "uniref.fasta", "--pair", "complete")
    assert [text.split(b"\n")[1::2] for text in files.values()] == [
        text.split(b"\n")[1::2] for text in expected.values()
    ]


def test_copies_have_the_same_rows_and_limits_hold(write: Callable[..., dict[str, bytes]]) -> None:
    files = write("copies", "uniref.fasta", "--pair", "greedy", "--max-seqs", "3")
    assert {text.count(b">") for text in files.values()} == {3} and len(files) == 3
    assert files["one.a3m"].split(b"\n")[1:] == files["again.a3m"].split(b"\n")[1:]
    files = write("three", "uniref.fasta", "--pair", "complete", "--min-identity", "99")
    assert {files[f"{name}.a3m"].count(b">") for name in TAXA} == {1}


@pytest.mark.parametrize("pair", [(), ("--pair", "greedy")])
def test_alphafold_3(write: Callable[..., dict[str, bytes]], chains: dict[str, str], pair: tuple[str, ...]) -> None:
    files = write("copies", "uniprot.fasta", "--for", "af3", *pair)
    jobs = {name: json.loads(text) for name, text in files.items()}
    assert list(jobs) == (["one_two_again.json"] if pair else ["again.json", "one.json", "two.json"])
    rows = []
    for name, job in jobs.items():
        assert (job["dialect"], job["version"], f"{job['name']}.json") == ("alphafold3", 1, name) and job[
            "modelSeeds"
        ]
        for entry in job["sequences"]:
            protein = entry["protein"]
            rows.append(a3m_rows(protein["unpairedMsa"]))
            assert (rows[-1][0][1], protein["pairedMsa"], protein["templates"]) == (protein["sequence"], "", [])
            assert len({title.split()[0] for title, _ in rows[-1]}) == len(rows[-1])
    if pair:
        ids = [entry["protein"]["id"] for entry in jobs["one_two_again.json"]["sequences"]]
        assert ids == [["A", "C"], ["B"]]
        check_pairs([each[:4] for each in rows], list(chains.values())[:2], [14, 15, 16])
        assert [len(each) for each in rows] == [8, 7]


@pytest.mark.parametrize("pair", [(), ("--pair", "greedy")])
def test_boltz(write: Callable[..., dict[str, bytes]], chains: dict[str, str], pair: tuple[str, ...]) -> None:
    files = write("three", "uniref.fasta", "--for", "boltz", *pair)
    for name, chain in chains.items():
        head, *lines = files[f"{name}.csv"].decode().splitlines()
        assert head == "key,sequence"
        keys, rows = zip(*(line.split(",") for line in lines), strict=True)
        a3m_rows("".join(f">{k}\n{row}\n" for k, row in enumerate(rows)))
        assert rows[0] == chain and len(set(rows)) == len(rows) and all(columns(row).strip("-") for row in rows)
        paired = [int(key) for key in keys if key != "-1"]
        n = len(set(TAXA[name]) & set(GREEDY))
        assert len(paired) == (n + 1 if pair else 0) and paired == sorted(set(paired)) and (not pair or not paired[0])
    assert len(files) == 3


@pytest.mark.parametrize("subjects", ["uniprot.fasta", "uniref.fasta", "plain.fasta"])
def test_chai(write: Callable[..., dict[str, bytes]], chains: dict[str, str], tmp_path: Path, subjects: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pair = () if subjects == "plain.fasta" else ("--pair", "greedy")
    files = write("three", subjects, "--for", "chai", *pair)
    names = {f"{hashlib.sha256(chain.encode()).hexdigest()}.aligned.pqt": key for key, chain in chains.items()}
    assert set(files) == set(names)
    sources = {"uniprot.fasta": "uniprot", "uniref.fasta": "uniref90", "plain.fasta": "bfd_uniclust"}
    for file, name in names.items():
        table: dict[str, list[Any]] = parquet.read_table(tmp_path / file).to_pydict()
        assert list(table) == ["sequence", "source_database", "pairing_key", "comment"]
        rows = a3m_rows("".join(f">{k}\n{row}\n" for k, row in enumerate(table["sequence"])))
        assert rows[0][1] == chains[name] and all(row.strip("-") for _, row in rows)
        assert table["source_database"] == ["query", *[sources[subjects]] * (len(rows) - 1)]
        keys = [key for key in table["pairing_key"] if key]
        assert sorted(map(int, keys)) == (sorted(set(TAXA[name]) & set(GREEDY)) if pair else [])
        if pair:
            found = zip(table["pairing_key"], table["comment"], strict=True)
            assert all(int(key) == taxon(title) for key, title in found if key)


def test_colabfold(write: Callable[..., dict[str, bytes]], chains: dict[str, str]) -> None:
    assert sorted(write("two", "uniref.fasta", "--for", "colabfold")) == ["one.a3m", "two.a3m"]
    files = write("copies", "uniref.fasta", "--for", "colabfold", "--pair", "complete")
    head, *lines = files["one_two_again.a3m"].decode().splitlines()
    assert head == "#90,80\t2,1"
    rows = a3m_rows("\n".join(lines))
    assert rows[0] == ("101\t102", chains["one"] + chains["two"])
    kinds = []
    for title, row in rows:
        parts = columns(row)[:90].strip("-"), columns(row)[90:].strip("-")
        kinds.append("paired" if all(parts) else "101" if parts[0] else "102")
        titles = title.split("\t")
        assert len(titles) == (2 if all(parts) else 1)
        if all(parts) and titles[0] != "101":
            assert taxon(titles[0]) == taxon(titles[1])
    assert [(key, len([*group])) for key, group in groupby(kinds)] == [("paired", 4), ("101", 5), ("102", 4)]
    assert (rows[4], rows[9]) == (("101", chains["one"] + "-" * 80), ("102", "-" * 90 + chains["two"]))


@pytest.mark.parametrize("subjects", ["uniprot.fasta", "uniref.fasta"])
def test_protenix(write: Callable[..., dict[str, bytes]], chains: dict[str, str], subjects: str) -> None:
    names = {f"{name}/non_pairing.a3m" for name in TAXA}
    assert set(write("three", subjects, "--for", "protenix")) == names
    files = write("three", subjects, "--for", "protenix", "--pair", "greedy")
    assert set(files) == names | {f"{name}/pairing.a3m" for name in TAXA}
    for name, taxa in TAXA.items():
        assert a3m_rows(files[f"{name}/non_pairing.a3m"].decode())[0][1] == chains[name]
        first, *rows = a3m_rows(files[f"{name}/pairing.a3m"].decode())
        assert first[1] == chains[name] and all(row.strip("-") for _, row in rows)
        words = [title.partition("/")[0].split("_") for title, _ in rows]
        assert all(word[0] == "UniRef100" and word[1][0] == "P" and len(word) == 3 for word in words)
        assert sorted(int(word[2]) for word in words) == sorted(set(taxa) & set(GREEDY))


def test_openfold_3(write: Callable[..., dict[str, bytes]], chains: dict[str, str]) -> None:
    files = write("three", "uniprot.fasta", "--for", "openfold3", "--pair", "greedy")
    assert set(files) == {f"{name}/colabfold_{kind}.a3m" for name in TAXA for kind in ("main", "paired")}
    rows = [a3m_rows(files[f"{name}/colabfold_paired.a3m"].decode()) for name in TAXA]
    check_pairs(rows, list(chains.values()), GREEDY)
    for name in TAXA:
        assert a3m_rows(files[f"{name}/colabfold_main.a3m"].decode())[0][1] == chains[name]


@pytest.mark.parametrize(("queries", "subjects", "options", "said"), [
    ("single", "uniprot", "--pair greedy", "one distinct sequence, expected at least two, the chains of a complex"),
    ("two", "plain", "--pair complete", "no row with E <= 0.001 has a taxon, expected OX= or TaxID= in headers"),
    ("two", "uniprot", "--for af3 --outfmt stockholm", "expected one of them; leave --outfmt out"),
    ("two", "uniprot", "--for rosetta", "expected one of af3, boltz, chai, colabfold, protenix, openfold3"),
])  # fmt: skip
def test_errors(folder: Path, tmp_path: Path, queries: str, subjects: str, options: str, said: str) -> None:
    words = ["msa", folder / f"{queries}.fasta", folder / f"{subjects}.fasta", "-o", tmp_path, *options.split()]
    done = run(*words, *OPTIONS)
    assert done.returncode == 1 and said in done.stderr
    assert not any(tmp_path.iterdir())


def test_chai_needs_pyarrow(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["msa", folder / "two.fasta", folder / "uniprot.fasta", "-o", tmp_path, "--for", "chai", *OPTIONS]
    monkeypatch.setattr(sys, "argv", ["swsearch", *map(str, words)])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        sys.exit(main.main())
    assert ended.value.code == 1 and "--for chai: expected pyarrow" in capsys.readouterr().err
