"""Draw the null model of three pairs: an ordinary one, one of biased composition, and one of coiled coils.

Each panel shows scores of the query with shuffled copies of the subject, its score with the reversed subject, the
distributions before and after they count, and the score of the pair.

Needs: Swiss-Prot with accessions as identifiers, matplotlib. A minute.
Run:   python -m benchmarks.statistics.null_model --queries uniprot_sprot.fasta
           [--out benchmarks/results/null_model.png]
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.support import plots
from benchmarks.support.common import arguments, read
from swsearch.alphabet import PROTEIN
from swsearch.engines.pools import make_pool
from swsearch.inputs import Query
from swsearch.pipeline.null_models import REVERSED, NullModelFitter, score_shuffled
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring
from swsearch.statistics.distributions import EULER
from swsearch.statistics.null_model import FitSettings, PairNullModels

PAIRS = (
    ("haemoglobin and myoglobin", "P69905", "P02144", False),
    ("p53 and a collagen, reversed", "P04637", "P02452", True),
    ("tropomyosin and myosin, reversed", "P09493", "P35579", True),
)
"""Title, query, subject, and whether the subject is backwards: then the hit is chance."""

N_SHUFFLED = 400
SUBJECTS, RESIDUES = 20_000, 9_000_000
"""The size of a database, for the E-values in the titles."""


def density(scores: np.ndarray, mean: float, variance: float) -> np.ndarray:
    """Return Gumbel's density."""
    scale = math.sqrt(6 * variance) / math.pi
    z = (scores - mean) / scale + EULER
    return np.exp(-z - np.exp(-z)) / scale


def draw(axes: Axes, title: str, query: str, subject: str) -> None:
    """Draw one pair."""
    recurrence = Recurrence(Scoring(), "local")
    maker = NullModelFitter(FitSettings("local", 1, SUBJECTS, RESIDUES), recurrence, 1)
    codes, other = PROTEIN.encode(query), PROTEIN.encode(subject)
    (null,) = maker.fit_queries([Query("query", "", codes)])
    assert null is not None
    scores = score_shuffled(
        [codes], make_pool([other]), np.zeros((1, 2), dtype=np.int64), range(REVERSED, N_SHUFFLED), recurrence, 1
    )[0].astype(np.int64)
    reversed_, shuffled = scores[:1], scores[1:]
    backwards = np.ascontiguousarray(other[::-1])
    own = score_shuffled(
        [codes], make_pool([backwards]), np.zeros((1, 2), dtype=np.int64), range(REVERSED, 0), recurrence, 1
    )[0, 0]
    usual = PairNullModels(null, np.array([len(other)]), np.array([-1e3]), np.ones(1))
    pair = usual.with_copies(np.array([shuffled.mean()]), reversed_)
    at = np.arange(0, max(int(own), int(shuffled.max())) + 20, 0.25)
    axes.hist(shuffled, bins=np.arange(at[0], at[-1], 2), density=True, color="0.8", label="shuffled subject")
    for each, style, name in ((usual, ":", "random sequences"), (pair, "-", "null model of the pair")):
        axes.plot(at, density(at, each.means[0], each.variances[0]), style, color="C0", label=name)
    axes.axvline(int(reversed_[0]), color="C1", label="reversed subject")
    axes.axvline(int(own), color="C3", label="score of the pair")
    before, after = (float(each.evalues([int(own)], RESIDUES)[0]) for each in (usual, pair))
    axes.set(
        title=f"{title}\nE {before:.1e} by random sequences, {after:.1e} by the pair's null model",
        xlabel="score",
        ylabel="density",
    )
    axes.title.set_size(10)
    plots.tidy(axes)


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(out=Path("benchmarks/results/null_model.png"))
    options = parser.parse_args()
    proteins = dict(read(options.queries))
    figure = Figure(figsize=(8, 7.5), layout="constrained")
    panels = figure.subplots(len(PAIRS))
    for axes, (title, query, subject, is_backwards) in zip(panels, PAIRS, strict=True):
        draw(axes, title, proteins[query], proteins[subject][:: -1 if is_backwards else 1])
    panels[0].legend(frameon=False, fontsize=9)
    plots.save(figure, options.out)


if __name__ == "__main__":
    main()
