"""Searches of translated DNA for the tests of the writers, and what BLAST+ prints of the same sequences."""

from __future__ import annotations

import io
import random
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from Bio.Data import CodonTable
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

import swsearch
from swsearch.results import SearchResult
from swsearch.run_info import Program

QUERY_IS_DNA: tuple[Program, ...] = ("blastx", "tblastx")
SUBJECT_IS_DNA: tuple[Program, ...] = ("tblastn", "tblastx")

Record = tuple[str, str, str]
"""Identifier, description and letters."""

_CODONS: dict[str, list[str]] = {}
for _codon, _letter in CodonTable.unambiguous_dna_by_id[1].forward_table.items():
    _CODONS.setdefault(_letter, []).append(_codon)

_AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def _complement(dna: str) -> str:
    return dna[::-1].translate(str.maketrans("ACGTN", "TGCAN"))


def records() -> tuple[list[Record], list[Record]]:
    """Three proteins, and DNA that they are found in.

    One record has two of them, the first in two frames since a nucleotide is added to it, the second on the other
    strand; one has the third on the other strand with an unknown codon; one has nothing.
    """
    pick = random.Random(14)

    def dna(protein: str) -> str:
        return "".join(pick.choice(_CODONS[letter]) for letter in protein)

    def noise(length: int) -> str:
        return "".join(pick.choices("ACGT", k=length))

    def protein(length: int) -> str:
        return "".join(pick.choices(_AMINO_ACIDS, k=length))

    def mutated(sequence: str) -> str:
        return "".join(pick.choice(_AMINO_ACIDS) if pick.random() < 0.3 else letter for letter in sequence)

    a, b, c = protein(90), protein(70), protein(120)
    first = noise(50) + dna(a[:45]) + "A" + dna(a[45:]) + noise(31) + _complement(dna(b)) + noise(20)
    second = noise(40) + _complement(dna(c[:60]) + "NNN" + dna(c[63:])) + noise(11)
    proteins = [
        ("A", "protein A", mutated(a)),
        ("B", "", mutated(b)),
        ("C", "protein C OS=x", mutated(c[:50]) + "GG" + mutated(c[50:])),
    ]
    return proteins, [("d1", "two genes", first), ("d2", "minus", second), ("d3", "nothing", noise(100))]


def fasta(some: Iterable[Record]) -> str:
    """Records as FASTA."""
    return "".join(f">{name} {text}".rstrip() + f"\n{letters}\n" for name, text, letters in some)


def run_blast(folder: Path, program: Program, outfmt: str) -> str:
    """Run a program of BLAST+ with the records, and return its output; the folder gets a database of each kind."""
    for kind, some in zip(("prot", "nucl"), records(), strict=True):
        if not (folder / f"{kind}.fa").exists():
            (folder / f"{kind}.fa").write_text(fasta(some))
            command = ["makeblastdb", "-in", f"{kind}.fa", "-dbtype", kind, "-out", kind]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
    query = "nucl" if program in QUERY_IS_DNA else "prot"
    subject = "nucl" if program in SUBJECT_IS_DNA else "prot"
    command = [program, "-query", f"{query}.fa", "-db", subject, "-seg", "no", "-evalue", "1e-5", "-outfmt", outfmt]
    command += ["-sum_stats", "false"]
    command += [] if program == "tblastx" else ["-comp_based_stats", "0"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def records_of(program: Program) -> tuple[list[Record], list[Record]]:
    """The queries and the subjects of a program."""
    proteins, dna = records()
    return dna if program in QUERY_IS_DNA else proteins, dna if program in SUBJECT_IS_DNA else proteins


def search_records(program: Program, *, aligned: bool = False, **options: Any) -> list[SearchResult]:
    """Search the records; with ``aligned`` the hits are aligned together, otherwise each when it is asked for."""
    queries, subjects = (
        [SeqRecord(Seq(letters), name, description=f"{name} {text}") for name, text, letters in some]
        for some in records_of(program)
    )
    database = swsearch.Database.from_records(subjects, translate=program in SUBJECT_IS_DNA)
    one_each = program in SUBJECT_IS_DNA or "frame_shift" in options
    options = {"evalue": 1e-5, "max_alignments": 1 if one_each else 20} | options
    found = swsearch.search(queries, database, translate=program in QUERY_IS_DNA, engine="cpu", **options)
    return [result for batch in found.batches(aligned, several=False) for result in batch]


def write_translated(outfmt: str, results: Iterable[SearchResult]) -> Any:
    """Write results in a format, and return its output."""
    stream: Any = io.BytesIO() if outfmt in ("parquet", "arrow") else io.StringIO()
    swsearch.write(results, stream, outfmt)
    return stream.getvalue()
