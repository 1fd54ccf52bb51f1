"""Plots of results with matplotlib: scores, coverage and dot plots.

They need ``pip install 'swsearch[plot]'``. Each function draws into the given axes, or makes some, and returns them;
the caller saves or shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from swsearch.alignment import PairAlignment
from swsearch.errors import InputError, OptionError
from swsearch.frameshift_alignment import NUCLEOTIDES_OF, SHIFT_MARKS
from swsearch.translation.genetic_codes import CODON, Frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from swsearch.statistics.score_distribution import ScoreDistribution

CLASS_LIMITS = (40, 50, 80, 200)
"""Bits between BLAST's five classes of hits."""

CLASS_COLOURS = ("#8c8c8c", "#d0702a", "#c23b6b", "#7d2a8c", "#2b145c")
"""From light to dark, so that the order is seen in grey and by the colour-blind; as in the HTML report."""

BARS, HITS, CURVE = "#8aa0b4", "#b3371e", "#17212b"

DOT_PIXELS = 800
"""Most dots on a side of a dot plot; in longer sequences several residues share a dot."""

DOT_ROWS = 1 << 22
"""Cells of a dot plot that are worked out at a time, so that memory is bounded."""


class DrawnAlignment(Protocol):
    """The part of a `swsearch.results.Hsp` that plots use."""

    @property
    def pair(self) -> PairAlignment:
        """The alignment."""

    @property
    def score(self) -> int:
        """In matrix units."""

    @property
    def bit_score(self) -> float | None:
        """In bits, where there are any."""

    @property
    def query_range(self) -> tuple[int, int]:
        """Aligned part of the query, 0-based half-open, in nucleotides where it is DNA."""

    @property
    def query_frame(self) -> Frame | None:
        """Aligned frame, or part, of the query."""

    @property
    def subject_frame(self) -> Frame | None:
        """Aligned frame of the subject."""


class DrawnHit(Protocol):
    """The part of a `swsearch.results.Hit` that plots use."""

    @property
    def query_id(self) -> str:
        """The query's name."""

    @property
    def subject_id(self) -> str:
        """The subject's name."""

    @property
    def query_length(self) -> int:
        """Residues, or nucleotides of DNA."""

    @property
    def subject_length(self) -> int:
        """Length of the subject."""

    @property
    def score(self) -> int:
        """In matrix units."""

    @property
    def pair(self) -> PairAlignment:
        """The best alignment."""

    @property
    def hsps(self) -> Sequence[DrawnAlignment]:
        """All alignments."""


class DrawnResult(Protocol):
    """The part of a `swsearch.results.SearchResult` that plots use."""

    @property
    def query_id(self) -> str:
        """The query's name."""

    @property
    def query_length(self) -> int:
        """Residues, or nucleotides of DNA."""

    @property
    def has_query_frames(self) -> bool:
        """Whether the query is DNA."""

    @property
    def hits(self) -> Sequence[DrawnHit]:
        """The best first."""

    @property
    def distribution(self) -> ScoreDistribution | None:
        """Scores of the whole database."""


def plot_scores(result: DrawnResult, ax: Axes | None = None) -> Axes:
    """Draw the distribution of all subjects' scores, the expectation by chance, and the reported hits.

    Parameters
    ----------
    result : SearchResult
        Of a search with ``distribution=True``.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        If the result has no distribution, or there is no matplotlib.
    """
    distribution = result.distribution
    if distribution is None:
        raise InputError("plot_scores: the result has no distribution of scores; search with distribution=True")
    axes = _axes(ax)
    hits = np.array([hit.score for hit in result.hits if hit.score >= distribution.edges[0]], dtype=np.int64)
    places, n_hits = np.unique((hits - distribution.edges[0]) // distribution.width, return_counts=True)
    of_hits = distribution.edges[0] + places * distribution.width, n_hits
    for (starts, counts), colour, line, label in (
        (distribution.histogram(), BARS, 0.5, f"all {distribution.n_subjects:,} subjects"),
        (of_hits, HITS, 1, f"{len(result.hits):,} reported hits"),
    ):
        axes.bar(
            starts, counts, distribution.width, align="edge", color=colour, edgecolor=colour, lw=line, label=label
        )
    if distribution.expected is not None:
        middles = distribution.edges[:-1] + distribution.width / 2
        seen = np.where(distribution.expected >= 0.1, distribution.expected, np.nan)
        axes.plot(middles, seen, color=CURVE, lw=1.5, label="expected by chance")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.5)
    low, end, high = int(distribution.edges[0]), int(distribution.edges[-1]), int(distribution.scores[-1]) + 1
    if high - low > 1.5 * (end - low):
        _compress(axes, low, end, high)
    else:
        axes.set_xlim(low, max(high, end))
    axes.set_xlabel("score (matrix units)")
    axes.set_ylabel("subjects" if distribution.width == 1 else f"subjects in {distribution.width} units")
    axes.set_title(f"Scores of the whole database with {_plain(result.query_id)}")
    axes.legend(frameon=False)
    return axes


def _compress(axes: Axes, low: int, end: int, high: int) -> None:
    """Compress the axis from ``end`` on, so that very high scores leave room for the others."""
    unit = (end - low) / 4
    share = 0.38 / 0.62 * (end - low) / np.log1p((high - end) / unit)

    def there(score: Any) -> npt.NDArray[np.float64]:
        x = np.asarray(score, dtype=np.float64)
        return np.where(x <= end, x, end + share * np.log1p(np.maximum(x - end, 0) / unit))

    def back(place: Any) -> npt.NDArray[np.float64]:
        y = np.asarray(place, dtype=np.float64)
        return np.where(y <= end, y, end + unit * np.expm1(np.maximum(y - end, 0) / share))

    axes.set_xscale("function", functions=(there, back))
    axes.set_xlim(low, high)
    from matplotlib.ticker import MaxNLocator

    ticks = [float(x) for x in MaxNLocator(5, integer=True).tick_values(low, end) if low <= x <= end]
    room = (float(there(high)) - low) / 14
    for value in (factor * 10**power for power in range(8) for factor in (1, 2, 5)):
        if end < value <= high and float(there(value)) - float(there(ticks[-1])) >= room:
            ticks.append(value)
    axes.set_xticks(ticks, [f"{value:,.0f}" for value in ticks])
    axes.minorticks_off()
    axes.axvspan(end, high, color="0.93", zorder=0)


def plot_coverage(result: DrawnResult, ax: Axes | None = None, *, max_hits: int = 100) -> Axes:
    """Draw where the hits lie along the query, one line per hit, best on top, coloured by score as BLAST does.

    Parameters
    ----------
    result : SearchResult
        Its hits are aligned if they are not yet.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    max_hits : int, optional
        Most hits drawn.

    Returns
    -------
    matplotlib.axes.Axes
        With the query's residues, or its nucleotides where it is DNA, counted from 1, along x.

    Raises
    ------
    InputError
        If there is no matplotlib, or ``max_hits`` is below 1.
    """
    if max_hits < 1:
        raise OptionError("max_hits", max_hits, "an integer >= 1")
    axes = _axes(ax)
    from matplotlib.patches import Patch

    hits = result.hits[:max_hits]
    hsps = [(place, hsp) for place, hit in enumerate(hits) for hsp in hit.hsps]
    in_bits = any(hsp.bit_score is not None for _, hsp in hsps)
    values = np.array([hsp.bit_score if in_bits else hsp.score for _, hsp in hsps], dtype=np.float64)
    limits = _limits(values, in_bits)
    classes = np.searchsorted(limits, values, side="right")
    starts = [hsp.query_range[0] + 0.5 for _, hsp in hsps]
    widths = [hsp.query_range[1] - hsp.query_range[0] for _, hsp in hsps]
    colours = [CLASS_COLOURS[k] for k in classes]
    axes.barh([place + 1 for place, _ in hsps], widths, left=starts, height=0.8, color=colours)
    axes.set_xlim(0.5, result.query_length + 0.5)
    axes.set_ylim(max(len(hits), 1) + 0.5, 0.5)
    axes.set_xlabel(f"{_plain(result.query_id)} ({'nucleotide' if result.has_query_frames else 'residue'})")
    axes.set_ylabel("hit, best on top")
    axes.set_title(f"Coverage of the query by {len(hits):,} of {len(result.hits):,} hits")
    unit = "bits" if in_bits else "score"
    names = [
        f"< {limits[0]:g}",
        *(f"{limits[k]:g} to {limits[k + 1]:g}" for k in range(3)),
        f">= {limits[3]:g} {unit}",
    ]
    patches = [Patch(color=colour, label=name) for colour, name in zip(CLASS_COLOURS, names, strict=True)]
    axes.legend(
        handles=patches, ncols=5, frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.14)
    )
    return axes


def _limits(values: npt.NDArray[np.float64], in_bits: bool) -> npt.NDArray[np.float64]:
    """Return the four values between the classes: BLAST's bits, or fifths of the range of raw scores."""
    if in_bits or not len(values):
        return np.array(CLASS_LIMITS, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    return np.array([round(low + (high - low) * part / 5) for part in (1, 2, 3, 4)], dtype=np.float64)


def plot_dots(hit: DrawnHit, ax: Axes | None = None, *, window: int = 11, threshold: int | None = None) -> Axes:
    """Draw a dot plot of a hit's two whole sequences, and the reported alignments over it.

    Of DNA, dots are those of the frame that the best alignment is in, at their places on the DNA.

    Parameters
    ----------
    hit : Hit
        It is aligned if it is not yet.
    ax : matplotlib.axes.Axes, optional
        Where to draw.
    window : int, optional
        Pairs of residues along a diagonal whose scores are added.
    threshold : int, optional
        Least sum of a dot, matrix units; by default two per pair of residues.

    Returns
    -------
    matplotlib.axes.Axes
        Query along x, subject along y, residues counted from 1, or nucleotides of DNA.

    Raises
    ------
    InputError
        If there is no matplotlib, or ``window`` is below 1.
    """
    if window < 1:
        raise OptionError("window", window, "an integer >= 1")
    axes = _axes(ax)
    n, m = hit.query_length, hit.subject_length
    pair, frames = _frames_of(hit.hsps[0])
    dots = _dots(pair, window, 2 * window if threshold is None else threshold)
    edges = [_edges(*side) for side in zip(frames, (len(pair.query), len(pair.subject)), strict=True)]
    place = (*edges[0], *edges[1])
    axes.imshow(
        dots, cmap="Greys", vmin=0, vmax=1.4, origin="lower", extent=place, aspect="auto", interpolation="none"
    )
    for number, hsp in enumerate(hit.hsps):
        x, y = _path(hsp)
        axes.plot(x, y, color=HITS, lw=1.2, label=None if number else "alignment")
    axes.set_xlim(0.5, n + 0.5)
    axes.set_ylim(0.5, m + 0.5)
    axes.set_xlabel(f"{_plain(hit.query_id)} ({_unit(frames[0])})")
    axes.set_ylabel(f"{_plain(hit.subject_id)} ({_unit(frames[1])})")
    axes.set_title(f"Windows of {window} pairs")
    if hit.hsps:
        axes.legend(frameon=False, loc="upper left")
    return axes


def _dots(pair: PairAlignment, window: int, threshold: int) -> npt.NDArray[np.bool_]:
    """Return where windows reach the threshold, shape (at most DOT_PIXELS, the same): subject by query."""
    query, subject, scores = pair.query, pair.subject, pair.scoring.matrix.scores.astype(np.int32)
    n, m = len(query) - window + 1, len(subject) - window + 1
    width, height = min(DOT_PIXELS, max(len(query), 1)), min(DOT_PIXELS, max(len(subject), 1))
    dots = np.zeros((height, width), dtype=np.bool_)
    if n < 1 or m < 1:
        return dots
    middle = window // 2
    rows = max(1, DOT_ROWS // n)
    for start in range(0, m, rows):
        end = min(start + rows, m)
        table = scores[subject[start : end + window - 1, None], query[None, :]]
        sums = np.zeros((end - start, n), dtype=np.int32)
        for k in range(window):
            sums += table[k : k + end - start, k : k + n]
        at_subject, at_query = np.nonzero(sums >= threshold)
        y = (at_subject + start + middle) * height // len(subject)
        dots[y, (at_query + middle) * width // len(query)] = True
    return dots


def _frames_of(hsp: DrawnAlignment) -> tuple[PairAlignment, tuple[Frame | None, Frame | None]]:
    """Return an alignment and its frames; of a whole strand the one of its frames that the alignment begins in."""
    pair, frame = hsp.pair, hsp.query_frame
    if frame is None or frame.step == CODON:
        return pair, (frame, hsp.subject_frame)
    one = Frame(frame.number_at(pair.query_start), frame.dna_length)
    codes = pair.query[pair.query_start % CODON :: CODON]
    return PairAlignment(codes, pair.subject, pair.scoring, 0, 0, 0, ()), (one, hsp.subject_frame)


def _edges(frame: Frame | None, n: int) -> tuple[float, float]:
    """Return where the first of n residues begins on an axis, and where the last ends."""
    begin, end = (0, n) if frame is None else frame.dna_span(0, n)
    return (end + 0.5, begin + 0.5) if frame is not None and frame.is_reverse else (begin + 0.5, end + 0.5)


def _unit(frame: Frame | None) -> str:
    return "nucleotide" if frame is not None and frame.number else "residue"


def _path(hsp: DrawnAlignment) -> tuple[list[int], list[int]]:
    """Return the corners of an alignment's path, residues counted from 1, or nucleotides of DNA."""
    pair = hsp.pair
    x, x_step = _begin(hsp.query_frame, pair.query_start, pair.query_end)
    y, y_step = _begin(hsp.subject_frame, pair.subject_start, pair.subject_end)
    xs, ys = [x], [y]
    for n, operation in pair.cigar:
        if operation in SHIFT_MARKS:
            x += n * NUCLEOTIDES_OF[operation] * (1 if x_step > 0 else -1)
        else:
            x += 0 if operation == "D" else n * x_step
            y += 0 if operation == "I" else n * y_step
        xs.append(x)
        ys.append(y)
    return xs, ys


def _begin(frame: Frame | None, start: int, end: int) -> tuple[int, int]:
    """Return the first place of an alignment on an axis, and how far it is from a residue to the next."""
    if frame is None or not frame.number:
        return (start if frame is None else frame.dna_span(start, end)[0]) + 1, 1
    first, last = frame.dna_span(start, end)
    return (last, -CODON) if frame.is_reverse else (first + 1, CODON)


def _plain(text: str) -> str:
    """Return an identifier that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def _axes(ax: Axes | None) -> Axes:
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise InputError("plots need matplotlib; pip install 'swsearch[plot]'") from None
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.figure(figsize=(8, 4.5), layout="constrained").add_subplot()
