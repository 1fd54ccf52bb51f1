"""The tables and the pairwise report against blastp's own, for the same alignments."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.report_cases import make_result, mutated, report, table
from swsearch.alphabet import PROTEIN
from swsearch.report.tabular import choose_columns
from swsearch.results import SearchResult

COLUMNS = [
    "std", "qlen", "slen", "nident", "positive", "gaps", "ppos", "btop", "qseq", "sseq", "qcovs", "qcovhsp", "score",
    "qseqid", "qacc", "sallseqid", "sallacc", "sseqid", "sacc", "stitle", "salltitles",
]  # fmt: skip
# what says which alignment it is: where it differs, the other columns may
SAME = ["score", "qstart", "qend", "sstart", "send", "qseq", "sseq"]

needs_blastp = pytest.mark.skipif(
    not (shutil.which("blastp") and shutil.which("makeblastdb")), reason="blastp is not installed"
)
Case = tuple[Path, list[SearchResult]]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Random queries of several lengths and mutants of them, as BLAST database, FASTA and our own results."""
    generator = random.Random(20261121)
    letters = PROTEIN.letters[:20]

    def sequence(length: int) -> str:
        return "".join(generator.choices(letters, k=length))

    queries = [(f"q{n}", f"query number {n}", sequence(n)) for n in (30, 60, 120, 250, 450, 900)]
    subjects = []
    for name, _, text in queries:
        for number in range(20):
            cut = text[generator.randint(0, len(text) // 3) :]
            body = mutated(cut, 0.7 * generator.random(), generator)
            description = f"mutant {number} of {name}, OS=Random" if number else ""
            subjects.append((f"{name}_{number}", description, sequence(generator.randint(0, 40)) + body))
    folder = tmp_path_factory.mktemp("blastp")
    for path, records in (("q.fa", queries), ("s.fa", subjects)):
        lines = [f">{name} {description}".rstrip() + f"\n{text}\n" for name, description, text in records]
        (folder / path).write_text("".join(lines))
    subprocess.run(["makeblastdb", "-in", "s.fa", "-dbtype", "prot", "-out", "db"], cwd=folder, check=True,
                   capture_output=True)  # fmt: skip
    residues = sum(len(text) for _, _, text in subjects)
    return folder, [make_result(query, subjects, residues=residues) for query in queries]


def blastp(folder: Path, outfmt: str, *database: str) -> str:
    command = ["blastp", "-query", "q.fa", *(database or ("-db", "db")), "-outfmt", outfmt, "-evalue", "1000"]
    command += ["-comp_based_stats", "0", "-seg", "no", "-soft_masking", "false"]
    command += ["-max_hsps", "1", "-max_target_seqs", "500"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.peer
@needs_blastp
@pytest.mark.parametrize("database", [("-db", "db"), ("-subject", "s.fa")], ids=["database", "subjects"])
def test_every_column_is_blastps(case: Case, database: tuple[str, str]) -> None:
    folder, results = case
    outfmt = "6 " + " ".join(COLUMNS)
    ours = [row for result in results for row in table(outfmt, result)]
    theirs = [line.split("\t") for line in blastp(folder, outfmt, *database).splitlines()]
    names = [column.name for column in choose_columns(COLUMNS, "")]
    by_pair = {(row[0], row[1]): dict(zip(names, row, strict=True)) for row in ours}
    compared, differences = 0, []
    for row in theirs:
        line = dict(zip(names, row, strict=True))
        mine = by_pair[row[0], row[1]]
        if any(mine[name] != line[name] for name in SAME):
            continue
        compared += 1
        if "-subject" in database:  # here blastp has no titles
            line |= {"stitle": mine["stitle"], "salltitles": mine["salltitles"]}
        differences += [(row[:2], name, mine[name], line[name]) for name in names if mine[name] != line[name]]
    print(f"{compared} of blastp's {len(theirs)} alignments are ours, {len(names)} columns compared")
    assert not differences
    assert compared >= 150, f"only {compared} of {len(theirs)} alignments are the same"


@pytest.mark.peer
@needs_blastp
def test_field_names_are_blastps(case: Case) -> None:
    folder, results = case
    outfmt = "7 " + " ".join(COLUMNS)
    fields = {line for line in blastp(folder, outfmt).splitlines() if line.startswith("# Fields")}
    assert fields == {line for line in report(outfmt, *results).splitlines() if line.startswith("# Fields")}


@pytest.mark.peer
@needs_blastp
def test_alignments_in_the_pairwise_report_are_blastps(case: Case) -> None:
    folder, results = case
    ours, theirs = sections(report("0", *results)), sections(blastp(folder, "0"))
    score = re.compile(r"Score = .* bits \(\d+\)")
    same = equal = 0
    for key, text in theirs.items():
        mine = ours[key]
        if score.findall(mine) == score.findall(text) and rows(mine) == rows(text):
            same += 1
            equal += mine == text
    print(f"{same} of blastp's {len(theirs)} alignments are ours")
    assert same == equal
    assert same >= 150


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("Query  ", "Sbjct  "))]


def sections(text: str) -> dict[tuple[str, str], str]:
    """Cut a report into what it says of each query and subject, from the length of the subject on."""
    found = {}
    for part in text.split("Query= ")[1:]:
        query = part.split()[0]
        for section in part.split("\n>")[1:]:
            body = section.split("Lambda")[0].split("Query= ")[0]
            found[query, section.split()[0]] = "Length=" + body.split("Length=", 1)[1].rstrip()
    return found
