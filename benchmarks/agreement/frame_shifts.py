"""Count the proteins that are found whole in noisy reads, with frame shifts and without, beside diamond blastx -F.

The proteins are the open reading frames of a genome, from a start codon to a stop, on both strands. Reads are cut
from it, of both strands in turn; of their nucleotides a share is lost, as many are added, and as many are replaced.
A protein whose frame lies within what a read was cut from is true; it is found whole where one alignment with it
covers 95 % of it, and its residues are right where they are identical in that alignment, of all true proteins.

Needs: diamond where it is to be compared (Debian: diamond-aligner); five minutes on two busy processors. Exit code 1
if frame shifts find no more than plain frames, or a score with shifts is lower than the one without.
Run:   python -m benchmarks.agreement.frame_shifts GENOME.fasta[.xz] [--reads 25] [--length 3000]
           [--out benchmarks/results/frame_shifts.txt]
"""

from __future__ import annotations

import lzma
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.support.common import Records, arguments, command, finish, heading, swsearch, table, write
from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.translation.genetic_codes import reverse_complement, strand_codons

RATES = (0.0, 0.01, 0.03, 0.06)
"""Shares of nucleotides that are lost; as many are too many, and as many replaced."""

LEAST_RESIDUES, MOST_OVERLAP, WHOLE = 150, 0.5, 0.95
COST = 15
START, STOP = PROTEIN.letters.index("M"), PROTEIN.letters.index("*")
COLUMNS = "qseqid sseqid sstart send slen score nident"

Found = dict[tuple[str, str], tuple[float, int, float]]
"""By read and protein, of the best alignment: the share of it that is covered, the score, and the share identical."""

NOTHING = (0.0, 0, 0.0)


def genome_of(path: Path) -> ByteArray:
    """Read the first record of a FASTA file, packed or not, as codes."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
        lines = file.read().split(">", 2)[1].splitlines()
    return DNA.encode("".join(lines[1:]).upper())


def open_frames(genome: ByteArray) -> tuple[Records, list[tuple[int, int]]]:
    """Return the proteins of open frames that hardly overlap longer ones, and where they lie on the genome."""
    n, candidates = len(genome), []
    for sign, strand in ((1, genome), (-1, reverse_complement(genome))):
        codons = strand_codons(strand)
        for frame in range(3):
            residues, begin = codons[frame::3], 0
            for stop in np.flatnonzero(residues == STOP).tolist():
                starts = np.flatnonzero(residues[begin:stop] == START)
                if len(starts) and stop - begin - int(starts[0]) >= LEAST_RESIDUES:
                    first = begin + int(starts[0])
                    place = frame + 3 * first, frame + 3 * stop
                    at = place if sign > 0 else (n - place[1], n - place[0])
                    candidates.append((at, PROTEIN.decode(residues[first:stop])))
                begin = stop + 1
    taken = np.zeros(n, dtype=np.bool_)
    proteins, places = [], []
    for at, letters in sorted(candidates, key=lambda each: each[0][0] - each[0][1]):
        if taken[at[0] : at[1]].mean() < MOST_OVERLAP:
            taken[at[0] : at[1]] = True
            proteins.append((f"orf{len(proteins)}", letters))
            places.append(at)
    return proteins, places


def noisy(letters: str, rate: float, generator: np.random.Generator) -> str:
    """Lose, add and replace nucleotides, a share of them each."""
    made = []
    for letter in letters:
        kind = int(generator.random() / rate) if rate else 3
        if kind > 0:
            made.append(str(generator.choice(list("ACGT"))) if kind == 1 else letter)
        if kind == 2:
            made.append(str(generator.choice(list("ACGT"))))
    return "".join(made)


def cut(genome: ByteArray, places: Sequence[tuple[int, int]], options: object, rate: float) -> tuple[Records, set]:
    """Cut reads, and say which proteins are whole in each."""
    generator = np.random.default_rng(7)
    n, length = options.reads, options.length  # type: ignore[attr-defined]
    reads, truth = [], set()
    for read, begin in enumerate(generator.integers(0, len(genome) - length, n).tolist()):
        part = genome[begin : begin + length]
        letters = DNA.decode(reverse_complement(part) if read % 2 else part)
        reads.append((f"read{read}", noisy(letters, rate, generator)))
        within = (k for k, (first, last) in enumerate(places) if begin <= first and last <= begin + length)
        truth |= {(f"read{read}", f"orf{k}") for k in within}
    return reads, truth


def read_found(text: str) -> Found:
    """Read a table of hits."""
    found: Found = {}
    for line in text.splitlines():
        query, subject, *numbers = line.split("\t")
        start, end, length, score, same = map(int, numbers)
        best = (end - start + 1) / length, score, same / length
        found[query, subject] = max(found.get((query, subject), NOTHING), best)
    return found


def contenders(folder: Path, reads: Path) -> dict[str, Callable[[], Found]]:
    """Return what searches, by its name."""
    database, out = folder / "proteins.h5", folder / "found.tsv"

    def ours(*more: object) -> Found:
        common = ("--outfmt", f"6 {COLUMNS}", "--engine", "cpu", "-o", out, "--quiet", "--max-hits", 50)
        swsearch("search", reads, database, "--translate", *common, *more)
        return read_found(out.read_text())

    def theirs(*more: object) -> Found:
        given = ("-q", reads, "-d", folder / "proteins.dmnd", "-o", out, "--quiet", "--masking", 0, "-k", 50)
        scored = ("--comp-based-stats", 0, "--outfmt", 6, *COLUMNS.split())
        command("diamond", "blastx", *given, *scored, "--very-sensitive", *more)
        return read_found(out.read_text())

    made: dict[str, Callable[[], Found]] = {
        "swsearch --translate": ours,
        f"swsearch --translate --frame-shift {COST}": lambda: ours("--frame-shift", COST),
    }
    if shutil.which("diamond"):
        made["diamond blastx"] = theirs
        made[f"diamond blastx -F {COST}"] = lambda: theirs("-F", COST)
    return made


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("genome", type=Path, help="FASTA, packed by xz or not; its first record is taken")
    parser.add_argument("--reads", type=int, default=25, help="of each rate, default %(default)s")
    parser.add_argument("--length", type=int, default=3000, help="nucleotides of a read, default %(default)s")
    options = parser.parse_args()
    genome = genome_of(options.genome)
    proteins, places = open_frames(genome)
    rows: list[list[object]] = []
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fasta = write(folder / "proteins.fasta", proteins)
        swsearch("db", "build", fasta, "-o", folder / "proteins.h5", "--quiet")
        if shutil.which("diamond"):
            command("diamond", "makedb", "--in", fasta, "-d", folder / "proteins.dmnd", "--quiet")
        for rate in RATES:
            reads, truth = cut(genome, places, options, rate)
            kept: list[Found] = []
            for contender, search in contenders(folder, write(folder / "reads.fasta", reads)).items():
                started = time.perf_counter()
                kept.append(search())
                seconds = time.perf_counter() - started
                best = [kept[-1].get(pair, NOTHING) for pair in sorted(truth)]
                whole, parts = sum(each[0] >= WHOLE for each in best), sum(each != NOTHING for each in best)
                right = f"{sum(each[2] for each in best) / len(best):.1%}"
                rows.append([f"{rate:.0%}", contender, len(truth), parts, whole, right, f"{seconds:.1f}"])
            plain, shifted = kept[0], kept[1]
            good = good and all(shifted[pair][1] >= plain[pair][1] for pair in truth & plain.keys() & shifted.keys())
            n_whole = [sum(found.get(pair, NOTHING)[0] >= WHOLE for pair in truth) for found in kept[:2]]
            good = good and (n_whole[1] > n_whole[0] or rate == 0)
    lines = [
        *heading(__file__, ["numpy", "diamond"] if shutil.which("diamond") else ["numpy"]),
        f"{options.genome.name}: {len(genome):,} nucleotides, {len(proteins):,} open frames of {LEAST_RESIDUES} "
        f"residues or more; {options.reads} reads of {options.length:,} nucleotides for each rate;",
        "no score with shifts is below the one without, and more is found whole."
        if good
        else "A SCORE WITH SHIFTS IS BELOW THE ONE WITHOUT, OR NO MORE IS FOUND WHOLE.",
        "",
        *table(
            ["lost, added, replaced, each", "", "true", "found", "found whole", "residues right", "seconds"], rows
        ),
    ]
    finish(lines, options.out)
    if not good:
        sys.exit(1)


if __name__ == "__main__":
    main()
