"""DNA given for protein is refused wherever sequences come in; databases of DNA give back what was given."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

import swsearch
from support.command_line import fails, run
from support.databases import written
from support.db_helpers import HBA, HBB, put, wrong
from support.samples import sample
from swsearch.db import Database, build_database
from swsearch.db.fasta import FIRST_RESIDUES
from swsearch.errors import DatabaseDamageError, DatabaseError, InputError, OptionError, SequenceError
from swsearch.inputs import read_queries

DNA = "ACGTTGCATTACGATTTACGACGATACGA"
DNA_FASTA = f">d1 first\n{DNA}\n>d2\n{DNA.lower()}NNNNN\n"
PROTEIN_FASTA = f">p1\n{HBA}\n>p2\n{HBB}\n"
MIXED_FASTA = PROTEIN_FASTA + DNA_FASTA

# the rule


def expected(letters: str) -> bool:
    """Say whether letters are all of DNA and mostly bases, of which each is there, and enough."""
    bases, codes = len(re.findall("[ACGTU]", letters)), len(re.findall("[RYSWKMBDHV]", letters))
    no_others = not re.search("[^ACGTURYSWKMBDHVNX]", letters)
    return no_others and {*letters.replace("U", "T")} >= {*"ACGT"} and bases >= max(20, 9 * codes)


def is_refused(records: list[str]) -> bool:
    try:
        read_queries([(f"r{k}", letters) for k, letters in enumerate(records)])
    except SequenceError as error:
        assert "query: record 'r0': holds only letters of DNA" in str(error)
        return True
    return False


LETTERS = {"bases": "ACGT", "codes": "ACGTU" * 9 + "RYSWKMBDHVNX", "protein": "ARNDCQEGHILKMFPSTWYV", "few": "GAT"}


SIZES = [1, 3, 7, 12, 19, 20, 25, 33, 40, 70]


@pytest.mark.parametrize("seed", sample(range(40), lambda seed: seed < 4))
def test_the_rule(seed: int) -> None:
    generator = random.Random(seed)
    met = set()
    for _ in range(200):
        kinds, n_records = generator.choice([["bases", "codes"], [*LETTERS]]), generator.randint(1, 6)
        kind_and_size = [(generator.choice(kinds), generator.choice(SIZES)) for _ in range(n_records)]
        records = ["".join(generator.choices(LETTERS[kind], k=size)) for kind, size in kind_and_size]
        assert is_refused(records) == expected("".join(records)), records
        met.add(expected("".join(records)))
    assert met == {True, False}


PEPTIDES = ["GATTACA", "A" * 60, "GATGATGAT" * 9, "NNNACGTNNN", "ACGTACGTACGTACGTACGTF", "SKDVRYHMWB" * 9]
SPELLINGS = [DNA.lower(), DNA.replace("T", "U"), DNA + "N" * 200, "X" * 99 + DNA]


@pytest.mark.parametrize("letters", PEPTIDES + SPELLINGS)
def test_dna_is_dna_however_it_is_written_and_peptides_are_none(letters: str) -> None:
    assert is_refused([letters]) == (letters in SPELLINGS)


@pytest.mark.parametrize("begins_with_dna", [True, False])
def test_the_first_residues_of_a_file_decide(tmp_path: Path, begins_with_dna: bool) -> None:
    records = f">r0\n{DNA * (FIRST_RESIDUES // len(DNA) + 1)}\n", f">r1\n{HBA * (1 << 16)}\n"
    (tmp_path / "long.fa").write_text("".join(records if begins_with_dna else records[::-1]))
    done = run("db", "build", "long.fa", "-o", "out.h5", "--quiet", cwd=tmp_path)
    assert (done.returncode, "long.fa: record 'r0': holds only" in done.stderr) == (begins_with_dna, begins_with_dna)


# where sequences come in


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dna")
    for name, text in (("dna", DNA_FASTA), ("mixed", MIXED_FASTA), ("protein", PROTEIN_FASTA)):
        (made / f"{name}.fa").write_text(text)
    build_database(made / "protein.fa", made / "protein.h5")
    build_database(made / "dna.fa", made / "dna.h5", allow_dna=True)
    return made


TOLD = "dna.fa: record 'd1': holds only letters of DNA, expected protein; "
COMMANDS = {
    "queries": (1, ["search", "{}.fa", "protein.h5"]),
    "subjects": (2, ["search", "protein.fa", "{}.fa"]),
    "build": (1, ["db", "build", "{}.fa", "-o", "out.h5"]),
    "append": (1, ["db", "append", "protein.h5", "{}.fa", "--on-duplicate", "keep"]),
    "align A": (1, ["align", "{}.fa", "protein.fa", "--score-only"]),
    "align B": (1, ["align", "protein.fa", "{}.fa", "--score-only"]),
}

ALIGN = "align it with --alphabet dna"
REMEDIES = {"queries": "add --translate", "align A": ALIGN, "align B": ALIGN}


@pytest.mark.parametrize("place", COMMANDS)
def test_commands(folder: Path, tmp_path: Path, place: str) -> None:
    code, words = COMMANDS[place]
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = sorted(tmp_path.iterdir())
    dna = [word.format("dna") for word in words]
    remedy = REMEDIES.get(place, "build a DNA database with: swsearch db build --translate")
    fails(run(*dna, cwd=tmp_path), code, TOLD + remedy, "or pass --allow-dna (in Python allow_dna=True)")
    assert sorted(tmp_path.iterdir()) == before
    for allowed in ([word.format("mixed") for word in words], [*dna, "--allow-dna"]):
        done = run(*allowed, "--quiet", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_api(folder: Path) -> None:
    proteins, record = str(folder / "protein.fa"), SeqRecord(Seq(DNA), "d1")
    dna = swsearch.Scoring(swsearch.dna_matrix(), 10, 1)
    for sequences in (DNA, [DNA], ("d1", DNA), record, [record, DNA], folder / "dna.fa"):
        for ask in (swsearch.search, swsearch.score):
            with pytest.raises(InputError, match="holds only letters of DNA"):
                ask(sequences, proteins)
            with pytest.raises(DatabaseError, match="holds only letters of DNA"):
                list(ask(proteins, sequences))
        assert list(swsearch.search(sequences, sequences, allow_dna=True))
        assert swsearch.score(sequences, sequences, allow_dna=True).min() > 0
    with pytest.raises(OptionError, match="allow_dna: got 'no', expected True or False"):
        swsearch.search(proteins, proteins, allow_dna="no")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a: record .*: holds only letters of DNA, .* scoring=Scoring\(dna_matrix"):
        swsearch.align(DNA, HBA)
    assert swsearch.align(DNA, DNA, allow_dna=True).score > swsearch.align(DNA, DNA, scoring=dna).score
    with pytest.raises(SequenceError, match="<memory>: record 'd1': holds only letters of DNA"):
        swsearch.Database.from_records([("d1", DNA)])
    swsearch.Database.from_records([("d1", DNA)], allow_dna=True).close()


def test_what_is_no_dna_is_refused(tmp_path: Path) -> None:
    protein = tmp_path / "protein.fa"
    protein.write_text(">p\nMKVLEE\n")
    with pytest.raises(SequenceError, match=r"'[EL]' is no residue letter, expected one of the dna letters"):
        build_database(protein, tmp_path / "x.h5", translate=True)
    for asked in ({"mask": "lower"}, {"genetic_code": 7}):
        with pytest.raises(OptionError):
            build_database(protein, tmp_path / "x.h5", translate=True, **asked)
    with pytest.raises(OptionError, match="genetic_code"):
        build_database(protein, tmp_path / "x.h5", genetic_code=11)
    assert sorted(tmp_path.iterdir()) == [protein]


@pytest.mark.parametrize(("length", "problem"), [(-1, "record lengths are negative"), (99, "nucleotides do not fit")])
def test_lengths_that_no_build_writes_are_refused(tmp_path: Path, length: int, problem: str) -> None:
    fasta = written(tmp_path / "dna.fa", [("one", "acgtNNACGTTGCATTTAGRYK"), ("empty", "")])
    build_database(fasta, tmp_path / "dna.h5", translate=True)
    with pytest.raises(DatabaseDamageError, match=problem):
        Database.open(wrong(tmp_path / "dna.h5", tmp_path / "wrong.h5", "record_lengths", put(1, length)))
