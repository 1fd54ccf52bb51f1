"""Count the chance hits of DNA queries: windows of a genome, as they are and shuffled, against reversed proteins.

The six frames of a real window hold a gene and the patterns that its codons leave in the other frames; shuffled
nucleotides have stop codons everywhere, so that their frames are short pieces.

Needs: a genome, such as E. coli's of ragout-examples; mmseqs2-examples, or any proteins as --subjects. A minute.
Run:   python -m benchmarks.statistics.chance_dna --queries genome.fasta [--first 100] [--seed 1]
           [--out benchmarks/results/chance_dna.txt]
"""

from __future__ import annotations

import random

import swsearch
from benchmarks.statistics.chance_profiles import LEVELS, MOST, cells, counts_of
from benchmarks.statistics.chance_queries import shuffled
from benchmarks.support.common import Records, arguments, finish, heading, numbered, read, residues, table
from benchmarks.support.timing import say

SHORTEST, LONGEST = 300, 1500
"""Nucleotides of a window."""


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=100)
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    genome = max((letters for _, letters in read(options.queries)), key=len)
    windows: Records = []
    while len(windows) < options.first:
        place, length = chance.randrange(len(genome) - LONGEST), chance.randint(SHORTEST, LONGEST)
        window = genome[place : place + length]
        if set(window) <= set("ACGT"):
            windows.append((f"w{len(windows)}", window))
    queries = {"windows": windows, "shuffled": [(name, shuffled(letters, chance)) for name, letters in windows]}
    subjects = [(name, letters[::-1]) for name, letters in read(options.subjects) if letters]
    rows = []
    with swsearch.Database.from_records(numbered(subjects, "s")) as database:
        for kind, records in queries.items():
            found = swsearch.search(records, database, translate=True, evalue=max(LEVELS), max_hits=MOST)
            rows.append([kind, *cells(counts_of(found))])
            say(" ".join(rows[-1]))
    lines = [
        *heading(__file__, ["numpy"]),
        f"{options.queries.name}: {options.first:,} windows of {SHORTEST:,} to {LONGEST:,} nucleotides, "
        f"seed {options.seed}; {options.subjects.name}, backwards: {len(subjects):,} subjects, "
        f"{residues(subjects):,} residues",
        "",
        "Chance hits per query with an E-value of at most 0.001 to 10, the standard error of the mean at 1, and the",
        "most that one query had of E <= 1:",
        "",
        *table(["queries", "searches", *(f"E <= {level:g}" for level in LEVELS), "error at 1", "most"], rows),
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
