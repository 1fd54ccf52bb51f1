"""Train the library of contexts, `swsearch/profiles/contexts.npz`, on the columns that `columns.py` counts.

A context is a window of 13 columns of an alignment, with a frequency of each amino acid in each column (A. Biegert
and J. Soeding, PNAS 106:3770, 2009). First, expectation maximisation over windows of counts: the weight of a column
falls by --beta with each step from the centre, which has --centre. Then gradients: a window of one row of an
alignment should predict what the other rows have opposite its centre (C. Angermueller, A. Biegert and J. Soeding,
Bioinformatics 28:3240, 2012, predict the column). Only rows of an identity in --identity count, so that scores are
those of distant relatives. Each context keeps a weight for each residue of a window, and the centre's frequencies.

Every twentieth query is left out of the training; what the library predicts there is printed, in bits of a residue
more than the background's. One seed; CuPy where it is installed, or NumPy, and the last bit of matrix products may
differ between machines.

Needs: folders of `columns.py`. --epochs 0 does without gradients. With the defaults and the package's
5 million columns a minute and a half on an H200.
Run:   python -m benchmarks.training.contexts --work FOLDER [--work FOLDER] [--contexts 4000]
           [--out swsearch/profiles/contexts.npz]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import cupy as xp
except ImportError:
    xp = np

from benchmarks.support.common import arguments
from benchmarks.support.timing import say
from benchmarks.training.columns import MOST_ROWS
from swsearch.profiles.calibration import BACKGROUND
from swsearch.profiles.contexts import REACH, WIDTH, ContextLibrary

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]

LETTERS = 20
EXPECTED = xp.asarray(BACKGROUND)
BATCH = 4096
"""Windows of one matrix product."""

FEWEST, MOST = 2.5, 10.0
"""Observations of a column that is learnt from, beside the query, and what more of them count as."""

SHARED = 30
"""Columns in which two rows have residues, at least, so that their identity is known."""

MOST_OPPOSITE = 4.0
"""Residues opposite a window count as so many at most."""

PSEUDO = 0.5
"""Background counts of each column of a context."""

FRESH = 0.02
"""Expected windows of a context, as a share of the mean, below which it is replaced by a random window."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of alignments and rows of them, with `REACH` blank ones between two.

    Parameters
    ----------
    counts : ndarray, shape (n, 20), float32
        Observed amino acids of columns, those of one alignment after the other.
    observations : ndarray, shape (n,), float32
        Independent sequences, beside the query.
    query : ndarray, shape (n,), int64
        Number of the alignment; -1 of blank columns.
    letters : ndarray, shape (n_letters,), uint8
        Amino acids of the rows, the query's first; 20 where there is none.
    first, step, rows : ndarray, shape (n,), int64
        Where the query's letter of each column is, how far the next row's is from there, and the number of rows.
    identity : ndarray, shape (n_queries, MOST_ROWS, MOST_ROWS), float32
        Of each two rows of an alignment; -1 where they share fewer than `SHARED` columns.
    """

    counts: Floats
    observations: Floats
    query: Places
    letters: npt.NDArray[np.uint8]
    first: Places
    step: Places
    rows: Places
    identity: Floats

    @classmethod
    def read(cls, folders: Sequence[Path]) -> Columns:
        """Read all files of folders."""
        parts: list[tuple[npt.NDArray[Any], ...]] = []
        identity: list[Floats] = []
        n_letters, n_queries = 0, 0
        for path in [path for folder in folders for path in sorted(folder.glob("columns*.npz"))]:
            with np.load(path, allow_pickle=False) as file:
                stored = {name: file[name] for name in file.files}
            sizes, column, letter = stored["sizes"].astype(np.int64), 0, 0
            for m, n in sizes.tolist():
                letters = np.full((m, n + 2 * REACH), LETTERS, dtype=np.uint8)
                letters[:, REACH:-REACH] = np.minimum(stored["rows"][letter : letter + m * n].reshape(m, n), LETTERS)
                counts, observations = np.zeros((n + REACH, LETTERS), dtype=np.float32), np.zeros(n + REACH)
                observations[:n] = stored["observations"][column : column + n]
                shares = stored["frequencies"][column : column + n]
                counts[:n] = shares * np.minimum(observations[:n, None] + 1, MOST)
                query = np.full(n + REACH, n_queries)
                query[n:] = -1
                first = np.arange(n + REACH) + REACH + n_letters
                many = np.full((2, n + REACH), [[n + 2 * REACH], [m]])
                parts.append((counts, observations.astype(np.float32), query, letters.ravel(), first, *many))
                identity.append(identities(letters[:, REACH:-REACH]))
                n_queries, n_letters = n_queries + 1, n_letters + letters.size
                column, letter = column + n, letter + m * n
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)), np.stack(identity))

    def to_device(self) -> Columns:
        """Return the same on the device of `xp`."""
        return Columns(*(xp.asarray(getattr(self, one.name)) for one in fields(self)))

    def windows(self, centres: Places) -> Floats:
        """Return the counts of windows, shape (n, 13 x 20)."""
        places = centres[:, None] + xp.arange(-REACH, REACH + 1)
        return self.counts[places].reshape(len(centres), WIDTH * LETTERS)

    def draw_rows(self, centres: Places, generator: np.random.Generator) -> Places:
        """Draw a row for each window; it is the query, 0, where the drawn one has no residue in the centre."""
        drawn = (xp.asarray(generator.random(len(centres))) * self.rows[centres]).astype(np.int64)
        return xp.where(self.letters[self.first[centres] + self.step[centres] * drawn] < LETTERS, drawn, 0)

    def residues(self, centres: Places, rows: Places) -> Floats:
        """Return which residues rows have in windows, ones among zeros, shape (n, 13 x 20)."""
        at = self.first[centres] + self.step[centres] * rows
        letters = self.letters[at[:, None] + xp.arange(-REACH, REACH + 1)]
        ones = letters[:, :, None] == xp.arange(LETTERS)
        return ones.reshape(len(centres), WIDTH * LETTERS).astype(np.float32)

    def opposite(self, centres: Places, rows: Places, limits: Sequence[float]) -> Floats:
        """Return how many residues other rows have in the centres, shape (n, 20): those of an identity in limits."""
        low, high = limits
        shared = self.identity[self.query[centres], rows]
        others = xp.arange(MOST_ROWS)
        is_other = (others != rows[:, None]) & (others < self.rows[centres, None])
        is_other &= (shared >= low) & (shared <= high)
        at = xp.where(is_other, self.first[centres, None] + self.step[centres, None] * others, 0)
        letters = xp.where(is_other, self.letters[at], LETTERS)
        return (letters[:, :, None] == xp.arange(LETTERS)).sum(axis=1).astype(np.float32)

    def centres(self) -> Places:
        """Return the columns that are learnt from."""
        return np.flatnonzero((self.observations >= FEWEST) & (self.letters[self.first] < LETTERS))

    def inner(self, centres: Places) -> Places:
        """Return those whose whole window is observed."""
        seen = np.convolve(self.observations > 0.5, np.ones(WIDTH), mode="same") > WIDTH - 0.5
        return centres[seen[centres]]


def identities(letters: npt.NDArray[np.uint8]) -> Floats:
    """Return the identity of each two rows, shape (MOST_ROWS, MOST_ROWS)."""
    result = np.full((MOST_ROWS, MOST_ROWS), -1.0, dtype=np.float32)
    is_there = letters < LETTERS
    for k, row in enumerate(letters):
        shared = is_there & is_there[k]
        n = shared.sum(axis=1)
        same = ((letters == row) & shared).sum(axis=1)
        result[k, : len(letters)] = np.where(n >= SHARED, same / np.maximum(n, 1), -1.0)
    return result


@dataclass(eq=False)
class Model:
    """Parameters of contexts, as they are trained.

    Parameters
    ----------
    weights : ndarray, shape (13 x 20, K), float32
        Of each residue of a window.
    bias : ndarray, shape (K,), float32
        Of each context.
    emission : ndarray, shape (K, 20), float32
        Logarithms of the centre's frequencies, not normalised.
    """

    weights: Floats
    bias: Floats
    emission: Floats

    def parameters(self) -> list[Floats]:
        """Return all arrays."""
        return [self.weights, self.bias, self.emission]

    def library(self) -> ContextLibrary:
        """Return the library as the package has it."""
        weights, bias, emission = (np.asarray(one.tolist()) for one in self.parameters())
        return ContextLibrary.from_floats(weights.reshape(WIDTH, LETTERS, -1), bias, emission)


def batches(centres: Places, size: int = BATCH) -> Iterator[Places]:
    """Yield parts of windows, on the device."""
    for first in range(0, len(centres), size):
        yield xp.asarray(centres[first : first + size])


def softmax(scores: Floats) -> Floats:
    """Turn scores, shape (n, K), into probabilities in place; return the logarithms of their sums, shape (n,)."""
    most = scores.max(axis=1, keepdims=True)
    scores -= most
    xp.exp(scores, out=scores)
    sums = scores.sum(axis=1, keepdims=True)
    scores /= sums
    return (most + xp.log(sums))[:, 0]


def position_weights(centre: float, beta: float) -> Floats:
    """Return the weights of the columns of a window, each for its 20 letters, shape (13 x 20,)."""
    return xp.repeat(centre * beta ** abs(xp.arange(-REACH, REACH + 1)), LETTERS).astype(np.float32)


def normalised(counts: Floats) -> Floats:
    """Return logarithms of frequencies in columns of windows, shape (K, 13 x 20), with pseudo-counts."""
    shaped = counts.reshape(len(counts), WIDTH, LETTERS) + PSEUDO * EXPECTED
    logs = xp.log(shaped / shaped.sum(axis=2, keepdims=True))
    return logs.reshape(len(counts), WIDTH * LETTERS).astype(np.float32)


def maximise(columns: Columns, centres: Places, options: argparse.Namespace) -> Model:
    """Train contexts by expectation maximisation, the first iterations on a part of the windows."""
    generator = np.random.default_rng(options.seed)
    of_position = position_weights(options.centre, options.beta)
    k = options.contexts
    start = xp.asarray(generator.permutation(centres)[:k])
    logs, prior = normalised(columns.windows(start)), xp.full(k, -np.log(k), dtype=np.float32)
    for iteration in range(options.iterations):
        part = max(options.least_part, min(1.0, (iteration + 1) / options.iterations))
        chosen = generator.permutation(centres)[: int(part * len(centres))]
        counts, sums = xp.zeros((k, WIDTH * LETTERS), dtype=np.float32), xp.zeros(k)
        weighted, likelihood, begun = (of_position * logs).T.copy(), 0.0, time.monotonic()
        for some in batches(chosen):
            windows = columns.windows(some)
            scores = windows @ weighted
            scores += prior
            likelihood += float(softmax(scores).sum())
            counts += scores.T @ windows
            sums += scores.sum(axis=0)
        poor = xp.flatnonzero(sums < FRESH * sums.mean())
        if iteration < options.iterations - 3 and len(poor):
            counts[poor] = columns.windows(xp.asarray(generator.choice(centres, len(poor))))
            sums[poor] = sums.mean() / 4
        logs = normalised(counts)
        prior = xp.log((sums + 1) / (sums + 1).sum()).astype(np.float32)
        say(
            f"iteration {iteration + 1}: {likelihood / len(chosen):.4f} nats a window, {len(poor)} new contexts, "
            f"{len(chosen):,} windows, {time.monotonic() - begun:.0f} s"
        )
    middle = logs.reshape(k, WIDTH, LETTERS)[:, REACH]
    # a constant of all letters in a column changes only the bias where the column is there
    table = of_position * (logs - xp.tile(xp.log(EXPECTED), WIDTH).astype(np.float32))
    return Model(xp.ascontiguousarray(table.T.astype(np.float32)), prior, middle.astype(np.float32).copy())


def samples(
    columns: Columns, centres: Places, generator: np.random.Generator, limits: Sequence[float]
) -> tuple[Floats, Floats]:
    """Draw a row for each window; return its residues, and how often each stands opposite the centre.

    Windows with nothing opposite are left out. More than `MOST_OPPOSITE` residues count as so many.
    """
    rows = columns.draw_rows(centres, generator)
    counts = columns.opposite(centres, rows, limits)
    total = counts.sum(axis=1, keepdims=True)
    seen = total[:, 0] > 0
    counts *= xp.minimum(total, MOST_OPPOSITE) / xp.maximum(total, 1)
    return columns.residues(centres[seen], rows[seen]), counts[seen]


def bits(model: Model, columns: Columns, centres: Places, limits: Sequence[float]) -> float:
    """Return how much better than the background single sequences predict others, in bits of a residue."""
    generator, gained, total = np.random.default_rng(0), 0.0, 0.0
    emission = model.emission.copy()
    softmax(emission)
    for some in batches(centres):
        seen, counts = samples(columns, some, generator, limits)
        scores = seen @ model.weights
        scores += model.bias
        softmax(scores)
        gained += float((counts * xp.log2(scores @ emission / EXPECTED)).sum())
        total += float(counts.sum())
    return gained / total


def refine(
    model: Model, columns: Columns, centres: Places, check: Places,
    options: argparse.Namespace,
) -> Model:  # fmt: skip
    """Fit all parameters to what single sequences should predict, by Adam with steps that fall to 0."""
    generator = np.random.default_rng(options.seed + 1)
    n_steps = options.epochs * -(-len(centres) // options.batch)
    adam = Adam(model, options.rate, n_steps, options.decay / len(centres))
    for epoch in range(options.epochs):
        gained, total, begun = 0.0, 0.0, time.monotonic()
        for some in batches(generator.permutation(centres), options.batch):
            seen, counts = samples(columns, some, generator, options.identity)
            shown = xp.asarray(generator.random((len(seen), WIDTH))) >= options.hidden
            shown[:, REACH] = True
            seen *= xp.repeat(shown, LETTERS, axis=1)
            value, slopes = gradient(model, seen, counts)
            adam.step(slopes)
            gained += value
            total += float(counts.sum())
        left_out = bits(model, columns, check, options.identity)
        say(
            f"epoch {epoch + 1}: {gained / total:.4f} bits in training, {left_out:.4f} in queries left out, "
            f"{time.monotonic() - begun:.0f} s"
        )
    return model


class Adam:
    """Steps of Adam (D. P. Kingma and J. Ba, 2015) that fall to 0 as a cosine does.

    Parameters
    ----------
    model : Model
        What is changed, in place.
    rate : float
        Size of the first step.
    n_steps : int
        All steps.
    decay : float
        Pull to where the model began.
    """

    def __init__(self, model: Model, rate: float, n_steps: int, decay: float) -> None:
        self.parameters, self.rate, self.n_steps, self.decay = model.parameters(), rate, n_steps, decay
        self.anchors = [one.copy() for one in self.parameters]
        self.mean = [xp.zeros_like(one) for one in self.parameters]
        self.square = [xp.zeros_like(one) for one in self.parameters]
        self.n = 0

    def step(self, slopes: Sequence[Floats]) -> None:
        """Go up the slopes."""
        self.n += 1
        rate = self.rate * 0.5 * (1 + math.cos(math.pi * self.n / self.n_steps)) / (1 - 0.9**self.n)
        every = zip(self.parameters, slopes, self.anchors, self.mean, self.square, strict=True)
        for values, slope, anchor, mean, square in every:
            pulled = slope - self.decay * (values - anchor)
            mean += 0.1 * (pulled - mean)  # noqa: PLW2901
            square += 0.01 * (pulled * pulled - square)  # noqa: PLW2901
            values += rate * mean / (xp.sqrt(square / (1 - 0.99**self.n)) + 1e-9)  # noqa: PLW2901


def gradient(model: Model, seen: Floats, counts: Floats) -> tuple[float, list[Floats]]:
    """Return the bits of the residues opposite some windows, and the gradient of a window's mean log-likelihood."""
    posterior = seen @ model.weights
    posterior += model.bias
    softmax(posterior)
    emission = model.emission.copy()
    softmax(emission)
    predicted = posterior @ emission
    ratio = counts / predicted
    value = float((counts * xp.log2(predicted / EXPECTED)).sum())
    to_emission = (posterior.T @ ratio) * emission
    to_emission -= emission * to_emission.sum(axis=1, keepdims=True)
    share = ratio @ emission.T
    share -= counts.sum(axis=1, keepdims=True)
    posterior *= share
    n = np.float32(len(seen))
    return value, [seen.T @ posterior / n, posterior.sum(axis=0) / n, to_emission / n]


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__, files=False)
    parser.add_argument("--work", type=Path, action="append", required=True, help="folder of columns")
    parser.add_argument("--contexts", type=int, default=4000, metavar="K", help="default %(default)s")
    parser.add_argument("--iterations", type=int, default=3, help="of maximisation, default %(default)s")
    parser.add_argument(
        "--least-part", type=float, default=0.25, help="of the windows in the first iteration, default %(default)s"
    )
    parser.add_argument("--centre", type=float, default=1.0, help="weight of the centre, default %(default)s")
    parser.add_argument("--beta", type=float, default=0.5, help="fall of weights a step, default %(default)s")
    parser.add_argument("--epochs", type=int, default=5, help="of gradients, default %(default)s")
    parser.add_argument(
        "--identity", type=float, nargs=2, default=(0.1, 0.3), help="of two rows, default %(default)s"
    )
    parser.add_argument("--batch", type=int, default=2048, help="windows of a step, default %(default)s")
    parser.add_argument("--hidden", type=float, default=0.1, help="share of neighbours hidden, default %(default)s")
    parser.add_argument("--rate", type=float, default=0.02, help="first step, default %(default)s")
    parser.add_argument("--decay", type=float, default=1.0, help="pull to where gradients began, default %(default)s")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="train on so many columns; 0, default: all")
    parser.add_argument("--seed", type=int, default=53, help="default %(default)s")
    parser.add_argument("--keep", type=Path, help="file of the maximised model, read if it is there")
    return parser.parse_args()


def maximised(columns: Columns, centres: Places, options: argparse.Namespace) -> Model:
    """Maximise, or read what was maximised before."""
    if options.keep is not None and options.keep.exists():
        with np.load(options.keep, allow_pickle=False) as file:
            return Model(*(xp.asarray(file[name]) for name in ("weights", "bias", "emission")))
    model = maximise(columns, centres, options)
    if options.keep is not None:
        xp.savez(options.keep, weights=model.weights, bias=model.bias, emission=model.emission)
    return model


def main() -> None:
    options = read_options()
    columns = Columns.read(options.work)
    centres = columns.centres()
    is_check = columns.query[centres] % 20 == 0
    check, centres = centres[is_check], centres[~is_check]
    if options.limit:
        centres = np.sort(np.random.default_rng(options.seed).permutation(centres)[: options.limit])
    say(f"{columns.query.max() + 1:,} queries, {len(centres):,} columns to learn from, {len(check):,} left out")
    inner, columns = columns.inner(centres), columns.to_device()
    model = maximised(columns, inner, options)
    say(f"maximised: {bits(model, columns, check, options.identity):.4f} bits in queries left out")
    if options.epochs:
        model = refine(model, columns, centres, check, options)
    if options.out:
        model.library().save(options.out)
        say(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
