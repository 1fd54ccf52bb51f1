"""Count what is found of families of coiled coils and repeats, whose reversed subjects raise E-values.

Known proteins of such families are searched for in Swiss-Prot. Of the subjects that blastp's defaults, and phmmer
(one iteration of jackhmmer), give an E-value of at most `LEVEL`, how many does swsearch, with defaults?

Needs: Swiss-Prot with accessions as identifiers, ncbi-blast+ and hmmer. Five minutes on two cores.
Run:   python -m benchmarks.statistics.repeats --queries uniprot_sprot.fasta
           [--out benchmarks/results/repeats.txt]
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import swsearch
from benchmarks.support.common import Records, arguments, command, finish, heading, need, read, residues, table, write
from benchmarks.support.timing import say

QUERIES = {
    "P09493": "tropomyosin",
    "P04264": "keratin",
    "P02452": "collagen",
    "P16157": "ankyrin",
    "P13489": "leucine-rich repeats",
    "P62873": "WD40",
}
"""Human proteins, by accession: what repeats in them."""

LEVEL = 1e-6
MOST = 10**6
"""More hits than any query has."""

Found = set[str]


def ours(query: Records, database: swsearch.Database) -> Found:
    """Return the subjects that swsearch finds."""
    (result,) = swsearch.search(query, database, evalue=LEVEL, max_hits=MOST)
    return {hit.subject_id for hit in result.hits}


def blastp(query: Path, database: Path) -> Found:
    """Return the subjects that blastp finds."""
    text = command(
        "blastp", "-query", query, "-db", database, "-evalue", LEVEL, "-max_hsps", 1, "-max_target_seqs", MOST,
        "-num_threads", os.cpu_count(), "-outfmt", "6 sseqid",
    )  # fmt: skip
    return set(text.split())


def phmmer(query: Path, subjects: Path) -> Found:
    """Return the subjects that phmmer finds."""
    hits = query.with_suffix(".tbl")
    command("phmmer", "--cpu", os.cpu_count(), "-E", LEVEL, "--noali", "--tblout", hits, query, subjects)
    return {line.split()[0] for line in hits.read_text().splitlines() if line[0] != "#"}


def kept(found: Found, others: Found) -> str:
    """Say what share of what others find is found."""
    return f"{100 * len(found & others) / max(len(others), 1):.1f}%"


def main() -> None:
    parser = arguments(__doc__)
    options = parser.parse_args()
    need("blastp", "makeblastdb", "phmmer")
    proteins = read(options.queries)
    by_name = dict(proteins)
    rows = []
    with TemporaryDirectory() as name, swsearch.Database.from_records(proteins) as database:
        folder = Path(name)
        subjects = write(folder / "subjects.fasta", proteins)
        command("makeblastdb", "-in", subjects, "-dbtype", "prot", "-out", folder / "blast")
        for accession, what in QUERIES.items():
            record = [(accession, by_name[accession])]
            query = write(folder / "query.fasta", record)
            found, by_blastp, by_phmmer = (
                ours(record, database),
                blastp(query, folder / "blast"),
                phmmer(query, subjects),
            )
            rows.append([
                f"{what}, {accession}", len(record[0][1]), f"{len(found):,}", f"{len(by_blastp):,}",
                f"{len(by_phmmer):,}", kept(found, by_blastp), kept(found, by_phmmer), kept(by_blastp, by_phmmer),
                kept(by_phmmer, by_blastp),
            ])  # fmt: skip
            say(" ".join(map(str, rows[-1])))
    lines = [
        *heading(__file__, ["blastp", "jackhmmer"]),
        f"{options.queries.name}: {len(proteins):,} subjects, {residues(proteins):,} residues; E <= {LEVEL:g}",
        "",
        *table(
            [
                "query", "residues", "swsearch", "blastp", "phmmer", "swsearch, of blastp's",
                "swsearch, of phmmer's", "blastp, of phmmer's", "phmmer, of blastp's",
            ],
            rows,
        ),
    ]  # fmt: skip
    finish(lines, options.out)


if __name__ == "__main__":
    main()
