"""Are the E-values of global and semi-global mode what they say? Chance hits expected against chance hits found.

Queries are proteins of the database with their residues shuffled: they have no relatives, so that every hit is one of
chance, and on average there should be E of them per query with an E-value of at most E. Each query is searched in the
whole database and in pieces of it, and each fit is judged with the distribution that swsearch uses and with others:
this is what the choices in `swsearch/statistics/fitted.py` rest on. The same proteins reversed are a harder test:
runs of a few kinds of residues, which resemble those of unrelated proteins, stay together.

Needs: mmseqs2-examples, or any proteins as --subjects. Takes about five minutes on two cores.
Run:   python -m benchmarks.statistics.fitted_statistics [--first 60] [--subjects FASTA]
           [--out benchmarks/results/fitted_statistics.txt]
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.support.common import Records, arguments, finish, read, residues, table, version_of
from swsearch.scoring import Mode, Scoring
from swsearch.statistics import fitted
from swsearch.statistics.distributions import Distribution, Gumbel, StudentT
from swsearch.statistics.fitted import Fit, FittedStatistics, fit_scores
from swsearch.statistics.regression import Lengths

SEED = 2026
LEVELS = (0.01, 0.1, 1.0, 10.0)
SHORTEST, LONGEST = 50, 800
"""Residues of a query."""

PIECE = 500
"""Subjects of a piece: the fewest that a fit takes."""

MODES: tuple[Mode, ...] = ("global", "semiglobal")

Scores = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Normal:
    """What ggsearch36 and glsearch36 hold z-scores to."""

    name = "normal distribution"

    def survival(self, z: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """See `swsearch.statistics.distributions.Distribution`."""
        values = [math.erfc(float(each) / math.sqrt(2)) / 2 for each in np.ravel(z)]
        return np.array(values).reshape(np.shape(z))

    def upper(self, probability: float) -> float:
        """See `swsearch.statistics.distributions.Distribution`."""
        low, high = -40.0, 40.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if self.survival(middle) > probability else (low, middle)
        return high


CANDIDATES: tuple[Distribution, ...] = (StudentT(31), Gumbel(), Normal())


def choose(subjects: Records, first: int) -> tuple[Records, Records]:
    """Return some of the subjects, shuffled and reversed."""
    chance = random.Random(SEED)
    chosen = chance.sample([each for each in subjects if SHORTEST <= len(each[1]) <= LONGEST], first)
    shuffled = [(name, "".join(chance.sample(letters, len(letters)))) for name, letters in chosen]
    return shuffled, [(name, letters[::-1]) for name, letters in chosen]


def fits(mode: Mode, queries: Records, lengths: npt.NDArray[np.int32], scores: Scores) -> Iterator[FittedStatistics]:
    """Fit each query's scores."""
    fit = Fit(mode, Scoring().gap_extend, len(lengths), int(lengths.sum()))
    by_length = Lengths(lengths)
    for (_, letters), row in zip(queries, scores, strict=True):
        yield fit_scores(fit, len(letters), by_length, row)


def hits(mode: Mode, queries: Records, lengths: npt.NDArray[np.int32], scores: Scores) -> npt.NDArray[np.int64]:
    """Count each query's hits at each level."""
    size = int(lengths.sum())
    counts = []
    for made, row in zip(fits(mode, queries, lengths, scores), scores, strict=True):
        likely = made.least_scores(max(LEVELS), int(lengths.max()), size)
        places = np.flatnonzero(row >= likely[lengths])
        evalues = made.evalues(row[places], made.query_length, lengths[places], size)
        counts.append([int((evalues <= level).sum()) for level in LEVELS])
    return np.array(counts)


def calibration(
    mode: Mode, kind: str, queries: Records, lengths: npt.NDArray[np.int32], scores: Scores
) -> Iterator[list[str]]:
    """Compare what is expected with what is found, a row for each distribution and database."""
    chosen = fitted.DISTRIBUTIONS[mode]
    pieces = [slice(k, k + PIECE) for k in range(0, len(lengths) - PIECE + 1, PIECE * 4)]
    for candidate in CANDIDATES if kind == "shuffled" else [chosen]:
        fitted.DISTRIBUTIONS[mode] = candidate
        whole = hits(mode, queries, lengths, scores)
        parts = np.concatenate([hits(mode, queries, lengths[piece], scores[:, piece]) for piece in pieces])
        for size, counts in ((len(lengths), whole), (PIECE, parts)):
            used = "yes" if candidate == chosen else ""
            most = counts[:, LEVELS.index(1.0)].max()
            yield [
                mode, kind, candidate.name.split(" distribution")[0], used, f"{size:,}", f"{len(counts):,}",
                *(f"{mean:.3g}" for mean in counts.mean(axis=0)), str(most),
            ]  # fmt: skip
    fitted.DISTRIBUTIONS[mode] = chosen


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=60)
    options = parser.parse_args()
    subjects = [(name, letters) for name, letters in read(options.subjects) if letters]
    nulls = dict(zip(("shuffled", "reversed"), choose(subjects, options.first), strict=True))
    lengths = np.array([len(letters) for _, letters in subjects], dtype=np.int32)
    rows: list[list[str]] = []
    seconds = []
    with swsearch.Database.from_records(subjects) as database:
        for mode in MODES:
            for kind, queries in nulls.items():
                scores = swsearch.score(queries, database, mode=mode, engine="cpu")
                rows += calibration(mode, kind, queries, lengths, scores)
            begun = time.perf_counter()
            for _ in fits(mode, queries, lengths, scores):
                pass
            seconds.append(f"{mode} {1e3 * (time.perf_counter() - begun) / len(queries):.1f} ms")
    columns = ["mode", "queries", "distribution", "used", "subjects", "searches"]
    lines = [
        f"benchmarks/statistics/fitted_statistics.py, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
        "2 cores of an x86-64 CPU",
        ", ".join(version_of(name) for name in ("swsearch", "numpy")),
        f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; queries: "
        f"{options.first} of them, {SHORTEST} to {LONGEST} residues, seed {SEED}; {Scoring().describe()}",
        "",
        "Chance hits per search with an E-value of at most 0.01, 0.1, 1 and 10: that is how many there should be.",
        "The last column is the most that one search had with E <= 1. Used: what swsearch uses.",
        "",
        *table([*columns, *(f"E <= {level:g}" for level in LEVELS), "most"], rows),
        "",
        f"Time of a fit: {', '.join(seconds)} per query.",
    ]
    finish(lines, options.out)


if __name__ == "__main__":
    main()
