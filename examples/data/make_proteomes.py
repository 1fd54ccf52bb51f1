"""Make two small proteomes whose orthologs are known, by simulated evolution of proteins of Swiss-Prot.

Each ancestor is a protein of the sample. Some genes duplicate before the two species part, some after, and some are
lost. Substitutions follow BLOSUM62; insertions and deletions are short. The same seed makes the same files.

Run: python examples/data/make_proteomes.py  (writes a.fasta, b.fasta and orthologs.tsv into the current folder)
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from Bio import SeqIO
from Bio.Align import substitution_matrices

SAMPLE = Path(__file__).with_name("swissprot_sample.fasta.gz")
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
LENGTHS = range(100, 401)

EVERY = 15
"""One of so many proteins of the sample is an ancestor."""

DISTANCES = (0.1, 1.6)
"""Substitutions per residue between two orthologs, drawn for each family."""

DUPLICATED, LOST, DUPLICATED_LATER = 0.5, 0.25, 0.1
"""Probabilities: a family duplicates before the split, a gene is lost, a gene duplicates after the split."""

GAPS = 0.03
"""Insertions and deletions per substitution, each of 1 to 8 residues."""


class Evolution:
    """Random changes of sequences."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        matrix = substitution_matrices.load("BLOSUM62")
        self.weights = {a: [2 ** (matrix[a][b] / 2) * (a != b) for b in LETTERS] for a in LETTERS}

    def evolve(self, letters: str, distance: float) -> str:
        """Return a sequence after so many substitutions per residue."""
        sequence = list(letters)
        for _ in range(round(distance * len(letters))):
            place = self.random.randrange(len(sequence))
            sequence[place] = self.random.choices(LETTERS, self.weights[sequence[place]])[0]
            if self.random.random() < GAPS:
                length = self.random.randint(1, 8)
                if self.random.random() < 0.5:
                    sequence[place:place] = self.random.choices(LETTERS, k=length)
                elif len(sequence) > 60:
                    del sequence[place : place + length]
        return "".join(sequence)

    def happens(self, probability: float) -> bool:
        """Return whether an event of this probability happens."""
        return self.random.random() < probability

    def species(self, gene: str, distance: float) -> list[str]:
        """Return the copies of a gene in one species: none, one or two."""
        if self.happens(LOST):
            return []
        if not self.happens(DUPLICATED_LATER):
            return [self.evolve(gene, distance)]
        early = self.evolve(gene, distance / 2)
        return [self.evolve(early, distance / 2) for _ in range(2)]


def ancestors() -> list[str]:
    """Return some proteins of the sample, of the 20 amino acids only."""
    with gzip.open(SAMPLE, "rt") as file:
        proteins = [str(record.seq) for record in SeqIO.parse(file, "fasta")]
    return [letters for letters in proteins[::EVERY] if len(letters) in LENGTHS and set(letters) <= set(LETTERS)]


def main() -> None:
    evolution = Evolution(seed=1)
    proteomes: dict[str, list[str]] = {"a": [], "b": []}
    orthologs: list[tuple[str, str]] = []
    for ancestor in ancestors():
        distance = evolution.random.uniform(*DISTANCES)
        genes = [ancestor]
        if evolution.happens(DUPLICATED):
            genes = [evolution.evolve(ancestor, distance / 4) for _ in range(2)]
        for gene in genes:
            names = {}
            for species, proteins in proteomes.items():
                copies = evolution.species(gene, distance / 2)
                names[species] = [f"{species.upper()}{len(proteins) + k + 1:03}" for k in range(len(copies))]
                proteins.extend(copies)
            orthologs += [(a, b) for a in names["a"] for b in names["b"]]
    for species, proteins in proteomes.items():
        lines = [f">{species.upper()}{k:03}\n{letters}\n" for k, letters in enumerate(proteins, 1)]
        Path(f"{species}.fasta").write_text("".join(lines), encoding="ascii")
    Path("orthologs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in orthologs), encoding="ascii")
    print(f"{len(proteomes['a'])} and {len(proteomes['b'])} proteins, {len(orthologs)} pairs of orthologs")


if __name__ == "__main__":
    main()
