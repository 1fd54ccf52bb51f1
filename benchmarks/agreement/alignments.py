"""Whether HMMER and HH-suite take the alignments of `swsearch msa`, and their profiles find the family again.

Domains of SCOPe are drawn that have relatives in their superfamily, and are taken out of the database. `swsearch msa`
makes an alignment for each, in three iterations, as Stockholm, A3M and aligned FASTA. Every Stockholm file goes to
hmmbuild, whose profile hmmsearch searches the database with; every A3M file to hhmake; every aligned FASTA file to
hmmbuild again, read as afa. Counted are the files that each takes, and of each query's relatives in the database
those in the alignment and those that hmmsearch finds up to --evalue. Exits with 1 if a file is refused.

Needs: hmmer, hhsuite (what is not installed is skipped), Biopython, pandas. Two minutes.
Run:   python -m benchmarks.agreement.alignments --subjects scop40.fasta.xz --work FOLDER [--queries 200]
           [--out benchmarks/results/agreement_alignments.txt]
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.statistics.sensitivity_measures import read_scope
from benchmarks.support.common import arguments, finish, heading, need, swsearch, table, write

SEED = 17
"""Of the drawing."""

LEAST_RELATIVES = 3
"""Relatives in the database that a query has at least."""

FORMATS = {"stockholm": ".sto", "a3m": ".a3m", "fasta-aligned": ".afa"}
"""Formats and the ends of their files."""


def takes(*parts: object) -> bool:
    """Say whether a program ends well; what it says otherwise is shown."""
    done = subprocess.run([str(part) for part in parts], capture_output=True, text=True, check=False)
    if done.returncode:
        print(" ".join(map(str, parts)), done.stderr[-500:], file=sys.stderr)
    return done.returncode == 0


def found_by(hmm: Path, subjects: Path, evalue: float) -> set[str]:
    """Return the subjects that hmmsearch reports up to an E-value."""
    out = hmm.with_suffix(".tbl")
    if not takes("hmmsearch", "--cpu", 2, "-o", "/dev/null", "--tblout", out, "-E", evalue, hmm, subjects):
        return set()
    return {line.split()[0] for line in out.read_text().splitlines() if not line.startswith("#")}


def rows_of(path: Path) -> set[str]:
    """Return the subjects that an A3M file has rows of."""
    names = [line[1:].split()[0] for line in path.read_text().splitlines() if line.startswith(">")]
    return {re.sub(r"/\d+-\d+(#\d+)?$", "", name) for name in names[1:]}


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--subjects", type=Path, required=True, help="SCOPe's domains, FASTA, plain or xz")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is made on the way")
    parser.add_argument("--queries", type=int, default=200, help="domains to hold out, default %(default)s")
    parser.add_argument("--evalue", type=float, default=1e-3, help="of rows and of hmmsearch, default %(default)s")
    options = parser.parse_args()
    need("hmmbuild", "hmmsearch")
    has_hhmake = shutil.which("hhmake") is not None
    records, labels = read_scope(options.subjects)
    many = np.flatnonzero(labels.relatives() > 2 * LEAST_RELATIVES).tolist()
    held = set(random.Random(SEED).sample(many, min(options.queries, len(many))))
    left = np.array([place for place in range(len(records)) if place not in held])
    options.work.mkdir(parents=True, exist_ok=True)
    queries = write(options.work / "queries.fasta", [records[place] for place in sorted(held)])
    subjects = write(options.work / "subjects.fasta", [records[place] for place in left.tolist()])
    database = options.work / "subjects.h5"
    swsearch("db", "build", subjects, "-o", database, "--quiet")
    for outfmt in FORMATS:
        folder = options.work / outfmt
        swsearch("msa", queries, database, "-o", folder, "--outfmt", outfmt, "--evalue", options.evalue, "--quiet")
    taken = dict.fromkeys(("hmmbuild, Stockholm", "hmmbuild, aligned FASTA", "hhmake, A3M"), 0)
    in_alignment, in_hmm, again, n_rows = [], [], [], 0
    for place in sorted(held):
        name = records[place][0]
        files = {outfmt: options.work / outfmt / f"{name}{end}" for outfmt, end in FORMATS.items()}
        hmm = files["stockholm"].with_suffix(".hmm")
        taken["hmmbuild, Stockholm"] += takes("hmmbuild", "--amino", "--hand", hmm, files["stockholm"])
        other = files["fasta-aligned"].with_suffix(".hmm")
        line = ("hmmbuild", "--amino", "--informat", "afa", "-n", name, other, files["fasta-aligned"])
        taken["hmmbuild, aligned FASTA"] += takes(*line)
        if has_hhmake:
            hhm = files["a3m"].with_suffix(".hhm")
            taken["hhmake, A3M"] += takes("hhmake", "-i", files["a3m"], "-o", hhm, "-M", "a3m", "-v", 1)
        same = left[labels.superfamily[left] == labels.superfamily[place]]
        relatives = {records[each][0] for each in same.tolist()}
        rows, found = rows_of(files["a3m"]), found_by(hmm, subjects, options.evalue)
        n_rows += len(rows)
        if relatives:
            in_alignment.append(len(rows & relatives) / len(relatives))
            in_hmm.append(len(found & relatives) / len(relatives))
        if rows & relatives:
            again.append(len(rows & relatives & found) / len(rows & relatives))
    lines = [
        *heading(__file__, ("numpy", "biopython")),
        f"{options.subjects.name}: {len(records):,} domains, {len(held):,} of them held out (seed {SEED}), each with",
        f"more than {2 * LEAST_RELATIVES} relatives; {n_rows:,} rows, E <= {options.evalue:g}",
        "",
        *table(["", "alignments taken", "of"], [[what, f"{n:,}", f"{len(held):,}"] for what, n in taken.items()]),
        "",
        f"relatives in the alignment: {100 * float(np.mean(in_alignment)):.1f} % of a query's, on average",
        f"relatives that hmmsearch finds with its profile: {100 * float(np.mean(in_hmm)):.1f} %",
        f"of the relatives in an alignment, hmmsearch finds again: {100 * float(np.mean(again)):.1f} %",
    ]
    finish(lines, options.out)
    refused = [what for what, n in taken.items() if n < len(held) and (has_hhmake or "hhmake" not in what)]
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
