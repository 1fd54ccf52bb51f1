"""Compare our profiles with those that psiblast makes of the same alignments.

Each query is searched twice by jackhmmer and once by psiblast, and what they align with it (`-A`, and the pairwise
alignments) becomes an alignment in the query's columns. psiblast makes its matrix of that (`-in_msa`,
`-out_ascii_pssm`), `build_profile` makes ours: as psiblast does, with blocks of any width, with wide ones, and as
searches do, with scores 1.15 times as large. Compared are the scores of the 20 amino acids, and the information of
each position, the relative entropy of its frequencies in bits.

A difference of one is mostly rounding: psiblast takes the frequencies that BLOSUM62 was made of, which the matrix
gives rounded to half bits, and scales by a lambda that is computed from its own rounded scores. Larger ones have
causes that the table's rows tell apart: `as psiblast` does not count sequences in gaps of 10 columns or more and
takes blocks of any width; `blocks of 25` widens these; searches count all gaps and scale scores. Of near-identical
rows psiblast keeps others: it compares rows over the columns of either, and here what lies within another row goes.
psiblast gives no bits to columns that only the query covers, which lowers the correlation of bits: here these have
the matrix's.

Needs: ncbi-blast+, hmmer, pandas. A few minutes.
Run:   python -m benchmarks.agreement.psiblast_pssm --scope scop40.fasta.xz [--queries FASTA --subjects FASTA]
           [--first 20] [--domains 60] [--out benchmarks/results/psiblast_pssm.txt]
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.statistics.sensitivity_measures import read_scope
from benchmarks.support.common import Records, arguments, command, finish, heading, need, read, table, write
from swsearch.alphabet import PROTEIN
from swsearch.profiles.construction import ProfileSettings, build_profile
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.scoring import Scoring

SETTINGS = {
    "as psiblast": ProfileSettings(min_block_columns=1, max_block_columns=1 << 30, scale=1.0, max_gap_length=9),
    "blocks of 25": ProfileSettings(min_block_columns=25, scale=1.0, max_gap_length=9),
    "as searches do": ProfileSettings(),
}
"""How our profiles are made, by the name of the table's row."""

LEAST_ROWS = 4
"""Alignments with fewer sequences are left out."""

SEED = 17
"""Of the sample of domains."""

FloatArray = npt.NDArray[np.float64]


@dataclass
class Differences:
    """Values collected over alignments: pairs of entries, and pairs of information values."""

    ours: list[FloatArray] = field(default_factory=list)
    theirs: list[FloatArray] = field(default_factory=list)
    our_information: list[FloatArray] = field(default_factory=list)
    their_information: list[FloatArray] = field(default_factory=list)

    def row(self) -> list[str]:
        """Return the cells of a table."""
        ours, theirs = np.concatenate(self.ours), np.concatenate(self.theirs)
        apart = np.abs(ours - theirs)
        worst = [np.abs(one - other).max() for one, other in zip(self.ours, self.theirs, strict=True)]
        each = [np.corrcoef(one, other)[0, 1] for one, other in zip(self.ours, self.theirs, strict=True)]
        information = [np.concatenate(one) for one in (self.our_information, self.their_information)]
        return [
            f"{len(self.ours)}", f"{len(ours):,}", f"{np.corrcoef(ours, theirs)[0, 1]:.4f}", f"{min(each):.4f}",
            f"{(apart == 0).mean():.1%}", f"{(apart <= 1).mean():.2%}", f"{(apart >= 3).mean():.3%}",
            f"{np.median(worst):.0f}", f"{apart.max():.0f}", f"{information[0].mean():.3f}",
            f"{information[1].mean():.3f}", f"{np.corrcoef(*information)[0, 1]:.4f}",
        ]  # fmt: skip


HEADS = [
    "alignments", "ours", "alignments", "entries", "correlation", "least of an alignment", "equal", "within 1",
    "3 or more apart", "largest, median alignment", "largest", "bits per position, ours", "psiblast's",
    "correlation of bits",
]  # fmt: skip


def alignment_of(query: str, rows: list[str]) -> QueryAlignment:
    """Return an alignment of rows of the query's length, dashes where they have nothing."""
    table_of = PROTEIN.encode_table.copy()
    table_of[ord("-")] = GAP
    columns = table_of[np.array([list(row.encode()) for row in [query, *rows]], dtype=np.uint8)]
    n = len(columns)
    alone = QueryAlignment.from_query("query", "", columns[0])
    zeros = np.zeros(n, dtype=np.int64)
    return QueryAlignment(
        ["query", *(f"s{k}" for k in range(1, n))], [""] * n, columns, zeros, zeros, alone.insertions, alone.inserted,
        zeros - 1, np.zeros(n), zeros,
    )  # fmt: skip


def psiblast_rows(query: Path, subjects: Path, n_columns: int) -> list[str]:
    """Return what a search by psiblast aligns with a query, in its columns."""
    text = command(
        "psiblast", "-query", query, "-db", subjects, "-evalue", 0.002, "-num_iterations", 1, "-outfmt",
        "6 qstart qend qseq sseq",
    )  # fmt: skip
    rows = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 4:
            continue
        begin, end = int(fields[0]) - 1, int(fields[1])
        aligned = "".join(b for a, b in zip(fields[2], fields[3], strict=True) if a != "-")
        rows.append("-" * begin + aligned + "-" * (n_columns - end))
    return rows


def jackhmmer_rows(query: Path, subjects: Path, n_columns: int, folder: Path) -> list[str]:
    """Return what the second search by jackhmmer aligns with a query, in its columns."""
    found = folder / "found.sto"
    command("jackhmmer", "-N", 2, "--noali", "-A", found, "-o", folder / "log", query, subjects)
    parts: dict[str, list[str]] = {}
    if not found.is_file():
        return []
    states = ""
    for line in found.read_text().splitlines():
        if line.startswith("#=GC RF"):
            states += line.split()[2]
        elif line and not line.startswith(("#", "/")):
            name, letters = line.split()
            parts.setdefault(name, []).append(letters)
    rows = ["".join(letters) for letters in parts.values()]
    of_query = rows[0].upper()  # jackhmmer's first row is the query; its own columns are those where it has residues
    kept = [place for place, letter in enumerate(of_query) if letter not in "-."]
    if len(kept) != n_columns:
        return []
    return ["".join(row[place].upper().replace(".", "-") for place in kept) for row in rows[1:]]


def psiblasts_matrix(query: str, rows: list[str], folder: Path) -> tuple[FloatArray, FloatArray] | None:
    """Return psiblast's scores of an alignment, shape (n, 20), and bits by position, shape (n,); None if it fails."""
    write(folder / "aligned.fasta", [("query", query), *((f"s{k}", row) for k, row in enumerate(rows, 1))])
    write(folder / "one.fasta", [("one", query)])
    out = folder / "matrix.txt"
    out.unlink(missing_ok=True)
    subprocess.run(
        ["psiblast", "-in_msa", folder / "aligned.fasta", "-subject", folder / "one.fasta", "-out_ascii_pssm", out,
         "-out", folder / "log"],
        capture_output=True, check=False,
    )  # fmt: skip
    if not out.is_file():
        return None
    lines = [line.split() for line in out.read_text().splitlines() if re.match(r"\s*\d+ [A-Z] ", line)]
    scores = np.array([[float(field) for field in line[2:22]] for line in lines])
    return scores, np.array([float(line[42]) for line in lines])


def bits(frequencies: FloatArray, background: FloatArray) -> FloatArray:
    """Return the relative entropy of each row, bits."""
    return np.asarray((frequencies * np.log2(frequencies / background)).sum(axis=1))


def alignments(queries: Records, subjects: Records, folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the program, the query and its rows, for each query and program."""
    write(folder / "subjects.fasta", [(f"s{k}", letters) for k, (_, letters) in enumerate(subjects)])
    command("makeblastdb", "-in", folder / "subjects.fasta", "-dbtype", "prot", "-out", folder / "subjects")
    for _, letters in queries:
        query = write(folder / "query.fasta", [("query", letters)])
        yield "psiblast", letters, psiblast_rows(query, folder / "subjects", len(letters))
        yield "jackhmmer", letters, jackhmmer_rows(query, folder / "subjects.fasta", len(letters), folder)


def compare(name: str, queries: Records, subjects: Records) -> list[list[str]]:
    """Return rows of the table for queries that are searched in subjects."""
    sums: dict[tuple[str, str], Differences] = {}
    scoring = Scoring()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for program, query, rows in alignments(queries, subjects, folder):
            theirs = psiblasts_matrix(query, rows, folder) if len(rows) >= LEAST_ROWS else None
            if theirs is None:
                continue
            for key, settings in SETTINGS.items():
                profile = build_profile(alignment_of(query, rows), scoring, settings)
                assert profile.frequencies is not None and profile.background is not None
                one = sums.setdefault((f"{name}, {program}", key), Differences())
                one.ours.append(profile.scores[:, :20].astype(np.float64).ravel())
                one.theirs.append(theirs[0].ravel())
                one.our_information.append(bits(profile.frequencies, profile.background))
                one.their_information.append(theirs[1])
    return [[*key, *one.row()] for key, one in sorted(sums.items())]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--scope", type=Path, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--domains", type=int, default=60, help="of SCOPe that are taken, default %(default)s")
    options = parser.parse_args()
    need("psiblast", "jackhmmer", "makeblastdb")
    rows = []
    if options.scope:
        domains, _ = read_scope(options.scope)
        chosen = np.random.default_rng(SEED).choice(len(domains), options.domains, replace=False)
        rows += compare("SCOPe", [domains[place] for place in sorted(chosen.tolist())], domains)
    if options.subjects.is_file():
        queries = read(options.queries, options.first)
        rows += compare("proteins", queries, read(options.subjects))
    lines = [
        *heading(__file__, ["psiblast", "jackhmmer"]),
        f"{options.domains} domains of SCOPe (seed {SEED}) among all, {options.first} proteins of "
        f"{options.queries.name} among those of {options.subjects.name}; at least {LEAST_ROWS} sequences aligned",
        "", *table(HEADS, rows),
    ]  # fmt: skip
    finish(lines, options.out)


if __name__ == "__main__":
    main()
