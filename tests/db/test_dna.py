"""DNA given for protein: the rule against a plain statement of it, and all the places where sequences come in."""

from __future__ import annotations

import random
import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

import swsearch
from support.command_line import fails, run
from support.db_helpers import HBA, HBB
from support.samples import sample
from swsearch.alphabet import PROTEIN
from swsearch.db import append_database, build_database
from swsearch.db.dna import DnaWatch, check_no_dna
from swsearch.db.fasta import RecordBatch
from swsearch.errors import DatabaseError, InputError, OptionError, SequenceError, SwsearchWarning
from swsearch.inputs import read_queries

DNA = "ACGTTGCATTACGATTTACGACGATACGA"
DNA_FASTA = f">d1 first\n{DNA}\n>d2\n{DNA.lower()}NNNNN\n"
PROTEIN_FASTA = f">p1\n{HBA}\n>p2\n{HBB}\n"
MIXED_FASTA = PROTEIN_FASTA + DNA_FASTA

# the rule, one record after the other


def counted(letters: str) -> tuple[bool, int]:
    """Say whether letters are all of DNA and mostly bases, of which each is there; and how many bases."""
    if re.search("[^ACGTURYSWKMBDHVNX]", letters):
        return False, 0
    bases, codes = len(re.findall("[ACGTU]", letters)), len(re.findall("[RYSWKMBDHV]", letters))
    return {*letters.replace("U", "T")} >= {*"ACGT"} and bases >= 9 * codes, bases


def expected(records: list[str]) -> str:
    all_dna, bases = counted("".join(records))
    if all_dna and bases >= 10:
        return "error" if bases >= 20 else "warning"
    found = [k for k, record in enumerate(records) if counted(record)[0] and counted(record)[1] >= 20]
    return f"{len(found)} of {len(records)} records hold only letters of DNA, e.g. 'r{found[0]}'" if found else ""


def batches(records: list[str], cuts: list[int]) -> list[RecordBatch]:
    """Make batches that end at some residues, wherever these stand in their records."""
    codes = PROTEIN.encode("".join(records))
    starts = np.cumsum([0, *map(len, records)])[:-1]
    none = np.empty(0, dtype=np.int64)
    made, done = [], 0
    for begin, end in pairwise(sorted({0, *cuts, len(codes)})):
        after = int(np.searchsorted(starts, end)) if end < len(codes) else len(records)
        headers = [f"r{k}".encode() for k in range(done, after)]
        lengths = np.array([len(header) for header in headers], dtype=np.int64)
        made.append(RecordBatch(codes[begin:end], starts[done:after] - begin, b"".join(headers), lengths, none, none))
        done = after
    return made


def said(records: list[str], cuts: list[int]) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = batches(records, cuts)
            assert [*DnaWatch("in.fa").watch(made)] == made
        except SequenceError as error:
            assert "holds only letters of DNA" in str(error)
            return "error"
    assert len(caught) <= 1
    return str(caught[0].message) if caught else ""


LETTERS = {"bases": "ACGT", "codes": "ACGTU" * 9 + "RYSWKMBDHVNX", "protein": "ARNDCQEGHILKMFPSTWYV", "few": "GAT"}


@pytest.mark.parametrize("seed", sample(range(40), lambda seed: seed < 4))
def test_the_rule_whatever_the_buffers(seed: int) -> None:
    generator = random.Random(seed)
    met = set()
    for _ in range(200):
        kinds = generator.choice([("bases", "codes"), tuple(LETTERS)])
        sizes = [0, 1, 3, 7, 12, 19, 20, 25, 33, 40, 70]
        records = [
            "".join(generator.choices(LETTERS[generator.choice(kinds)], k=generator.choice(sizes)))
            for _ in range(generator.randint(1, 6))
        ]
        total = len("".join(records))
        cuts = [generator.randint(1, total) for _ in range(generator.choice([0, 1, 3, 8]))] if total else []
        wanted, got = expected(records), said(records, cuts) if total else ""
        met.add(wanted[:1])
        words = "in.fa: holds only letters of DNA" if wanted == "warning" else wanted
        assert words in got if words else not got, f"{records} cut at {cuts}: {got!r}, expected {wanted!r}"
    assert met > {"", "e", "w", "1"}


@pytest.mark.parametrize(
    "letters",
    [
        *["GGG", "AC", "TAT", "GATTACA", "ACGT", "A" * 60, "GAGAGS" * 20, "GGGGS" * 10, "NNNNNNNNNN" * 8],
        *["GATGATGAT" * 9, "X" * 50, "NNNACGTNNN", "*" * 30, "ACGTACGTACGTACGTACGTF", "SKDVRYHMWB" * 9],
    ],
)
def test_peptides_that_are_no_dna(letters: str) -> None:
    check_no_dna("query", [("one", PROTEIN.encode(letters))])


def test_a_proteome_with_a_peptide_of_bases_is_silent() -> None:
    records = [(f"p{k}", PROTEIN.encode(letters)) for k, letters in enumerate([HBA, "GATTACATACAG", HBB, "", "ACGT"])]
    check_no_dna("query", records)


@pytest.mark.parametrize(
    "letters",
    [
        DNA,
        DNA.lower(),
        DNA.replace("T", "U"),
        DNA + "N" * 200,
        DNA * 3 + "RYKM",
        "X" * 99 + DNA,
        "GTGCCAGCMGCCGCGGTAATA",
    ],
)
def test_dna_is_dna_however_it_is_written(letters: str) -> None:
    with pytest.raises(SequenceError, match=r"query: holds only letters of DNA \(record 'one' with"):
        check_no_dna("query", [("one", PROTEIN.encode(letters))])


# where sequences come in


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dna")
    for name, text in (("dna", DNA_FASTA), ("mixed", MIXED_FASTA), ("protein", PROTEIN_FASTA)):
        (made / f"{name}.fa").write_text(text)
    build_database(made / "protein.fa", made / "protein.h5")
    build_database(made / "dna.fa", made / "dna.h5", allow_dna=True)
    return made


TOLD = "dna.fa: holds only letters of DNA (2 records, e.g. 'd1', with 58 bases), expected protein; "
WARNED = "swsearch: warning: mixed.fa: 2 of 4 records hold only letters of DNA, e.g. 'd1', expected protein; "
COMMANDS = {
    "queries": (1, ["search", "{}.fa", "protein.h5"]),
    "subjects": (2, ["search", "protein.fa", "{}.fa"]),
    "build": (1, ["db", "build", "{}.fa", "-o", "out.h5"]),
    "append": (1, ["db", "append", "protein.h5", "{}.fa", "--on-duplicate", "keep"]),
    "align A": (1, ["align", "{}.fa", "protein.fa", "--score-only"]),
    "align B": (1, ["align", "protein.fa", "{}.fa", "--score-only"]),
}


@pytest.mark.parametrize("place", COMMANDS)
def test_commands(folder: Path, tmp_path: Path, place: str) -> None:
    code, words = COMMANDS[place]
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = sorted(tmp_path.iterdir())
    dna = [word.format("dna") for word in words]
    remedy = "build a DNA database with: swsearch db build --translate"
    if "align" in place:
        remedy = "align it with --alphabet dna"
    if place == "queries":
        remedy = "add --translate"
    fails(run(*dna, cwd=tmp_path), code, TOLD + remedy, "or pass --allow-dna (in Python allow_dna=True)")
    assert sorted(tmp_path.iterdir()) == before
    done = run(*(word.format("mixed") for word in words), "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(WARNED + remedy) == 1, done.stderr
    assert done.stderr.count("\n") == 1
    done = run(*dna, "--allow-dna", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_database_is_searched_whatever_it_holds(folder: Path) -> None:
    done = run("search", "protein.fa", "dna.h5", "--quiet", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_dna_as_dna(folder: Path) -> None:
    done = run("align", "dna.fa", "dna.fa", "--alphabet", "dna", "--score-only", "--quiet", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_python_treats_a_warning_as_it_is_told(folder: Path) -> None:
    with pytest.warns(SwsearchWarning, match=r"mixed.fa: 2 of 4 records"):
        assert len(read_queries(folder / "mixed.fa")) == 4
    with pytest.raises(SwsearchWarning):  # of these tests warnings are errors
        swsearch.Database.from_fasta(folder / "mixed.fa")


def test_the_api(folder: Path, tmp_path: Path) -> None:
    proteins, record = str(folder / "protein.fa"), SeqRecord(Seq(DNA), "d1")
    dna = swsearch.Scoring(swsearch.dna_matrix(), 10, 1)
    for sequences in (DNA, [DNA], ("d1", DNA), record, [record, DNA], folder / "dna.fa"):
        with pytest.raises(InputError, match="holds only letters of DNA"):
            swsearch.search(sequences, proteins)
        with pytest.raises(DatabaseError, match="holds only letters of DNA"):
            list(swsearch.search(proteins, sequences))
        with pytest.raises(InputError, match="holds only letters of DNA"):
            swsearch.score(sequences, proteins)
        with pytest.raises(DatabaseError, match="holds only letters of DNA"):
            swsearch.score(proteins, sequences)
        assert list(swsearch.search(sequences, sequences, allow_dna=True))
        assert swsearch.score(sequences, sequences, allow_dna=True).min() > 0
    with pytest.raises(OptionError, match="allow_dna: got 'no', expected True or False"):
        swsearch.search(proteins, proteins, allow_dna="no")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a: holds only letters of DNA .* scoring=Scoring\(dna_matrix"):
        swsearch.align(DNA, HBA)
    assert swsearch.align(DNA, DNA, allow_dna=True).score > swsearch.align(DNA, DNA, scoring=dna).score
    with pytest.raises(SequenceError, match="<memory>: holds only letters of DNA"):
        swsearch.Database.from_records([("d1", DNA)])
    swsearch.Database.from_records([("d1", DNA)], allow_dna=True).close()
    with pytest.raises(SequenceError, match="holds only letters of DNA"):
        swsearch.Database.build(folder / "dna.fa", tmp_path / "x.h5")
    swsearch.Database.build(folder / "protein.fa", tmp_path / "x.h5").close()
    with pytest.raises(SequenceError, match="holds only letters of DNA"):
        append_database(tmp_path / "x.h5", folder / "dna.fa", on_duplicate="keep")
    append_database(tmp_path / "x.h5", folder / "dna.fa", allow_dna=True, on_duplicate="keep")
    assert [path.name for path in tmp_path.iterdir()] == ["x.h5"]
