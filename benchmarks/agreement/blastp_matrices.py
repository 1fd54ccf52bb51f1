"""How blastp scores every pair of letters: makes swsearch/matrices/*.txt, or checks them.

blastp's matrices are not the published ones where a letter is ambiguous or rare (B, J, Z, X, U, O, *), so they are
measured. Each of 27 queries, and of as many subjects, is one letter between two long random flanks that all share;
the alignment is ungapped and covers the whole of both, so its score less that of the flanks is the letters' score.
The flanks' score f follows from the measured totals themselves: it is the sum of (total - f) over its own letters.

Needs: blastp (Debian: ncbi-blast+). Takes some seconds. With --check, exit code 1 if a shipped file differs.
Run:   python -m benchmarks.agreement.blastp_matrices --check [--out benchmarks/results/blastp_matrices.txt]
       python -m benchmarks.agreement.blastp_matrices --write FOLDER
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from benchmarks.support.common import arguments, command, finish, heading, need, table, version_of, write
from swsearch.alphabet import PROTEIN
from swsearch.matrices import BLASTP_MATRICES, GAP_COSTS

FLANK = 60
"""Residues on either side: enough that no letter between them splits the alignment."""

SEED = 5

Scores = dict[tuple[str, str], int]


def measured(matrix: str, folder: Path) -> Scores:
    """Have blastp score every pair of letters with a matrix."""
    generator = random.Random(SEED)
    left, right = ("".join(generator.choices(PROTEIN.letters[:20], k=FLANK)) for _ in range(2))
    records = [(f"r{place}", left + letter + right) for place, letter in enumerate(PROTEIN.letters)]
    fasta = write(folder / "letters.fasta", records)
    gap_open, gap_extend = GAP_COSTS[matrix]  # any that blastp accepts would do
    printed = command(
        "blastp", "-query", fasta, "-subject", fasta, "-matrix", matrix, "-gapopen", gap_open, "-gapextend",
        gap_extend, "-comp_based_stats", 0, "-seg", "no", "-max_hsps", 1,
        "-outfmt", "6 qseqid sseqid score gaps length",
    )  # fmt: skip
    totals: Scores = {}
    for line in printed.splitlines():
        query, subject, score, gaps, length = line.split()
        if (gaps, length) != ("0", str(2 * FLANK + 1)):
            sys.exit(f"{matrix}: {query} with {subject}: the alignment is not whole; change SEED or FLANK")
        totals[PROTEIN.letters[int(query[1:])], PROTEIN.letters[int(subject[1:])]] = int(score)
    missing = [a + b for a in PROTEIN.letters for b in PROTEIN.letters if (a, b) not in totals]
    if missing:
        sys.exit(f"{matrix}: blastp reports no alignment of {', '.join(missing)}; change SEED or FLANK")
    flanks, rest = divmod(sum(totals[letter, letter] for letter in left + right), 2 * FLANK + 1)
    if rest:
        sys.exit(f"{matrix}: the totals contradict each other: blastp does not score a pair by its letters alone")
    return {pair: total - flanks for pair, total in totals.items()}


def matrix_file(matrix: str, scores: Scores) -> str:
    """Return the text of a matrix file in NCBI's format."""
    lines = [
        f"# {matrix} as {version_of('blastp').rstrip('+')} scores it, measured pair by pair "
        "(benchmarks/agreement/blastp_matrices.py); half, third or fifth bits as NCBI defines them.",
        "   " + "  ".join(f"{letter:>2}" for letter in PROTEIN.letters),
    ]
    lines += [f"{a} " + " ".join(f"{scores[a, b]:3d}" for b in PROTEIN.letters) for a in PROTEIN.letters]
    return "\n".join(lines) + "\n"


def shipped(matrix: str) -> str:
    """Return the text of the file that swsearch brings."""
    import swsearch

    path = Path(str(swsearch.__file__)).parent / "matrices" / f"{matrix}.txt"
    return path.read_text() if path.is_file() else ""


def body(text: str) -> list[list[str]]:
    """Return a matrix file's fields without its comments."""
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def main() -> None:
    parser = arguments(__doc__, files=False)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="compare with the files that swsearch ships")
    what.add_argument("--write", type=Path, metavar="FOLDER", help="write the files into an existing folder")
    options = parser.parse_args()
    need("blastp")

    rows, differing = [], 0
    with tempfile.TemporaryDirectory(prefix="swsearch-matrices-") as folder:
        for matrix in BLASTP_MATRICES:
            scores = measured(matrix, Path(folder))
            text = matrix_file(matrix, scores)
            if options.write:
                (options.write / f"{matrix}.txt").write_text(text)
            same = body(text) == body(shipped(matrix))
            differing += not same
            symmetric = all(scores[a, b] == scores[b, a] for a, b in scores)
            verdict = "yes" if same else "NO"
            rows.append([matrix, len(scores), min(scores.values()), max(scores.values()), symmetric, verdict])
    columns = ["matrix", "pairs", "min", "max", "symmetric", "equal to the shipped file"]
    finish([*heading(__file__, ["blastp"]), "", *table(columns, rows)], options.out)
    sys.exit(1 if options.check and differing else 0)


if __name__ == "__main__":
    main()
