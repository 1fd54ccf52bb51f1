"""Make interpret.png, the picture of "Interpret results": a good, a doubtful and a wrong hit in the example data.

Needs: matplotlib, pillow.
Run:   python docs/images/make_interpret.py
"""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from PIL import Image

import swsearch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"

PAIRS = {"Good": ("P05093", "B5BSX1"), "Doubtful": ("Q05639", "Q64ZR4"), "Wrong": ("Q4KMP7", "Q9JKA9")}
"""Accessions of query and subject by verdict."""

COPIES, WINDOW = 1000, 20
"""Number of shuffled copies of each subject, and residues that are shuffled together, as a search does."""

BLUE, RED, GREY = "#1f77b4", "#c0392b", "#b8b8b8"

DPI = 110


def shuffled(letters: str) -> str:
    """Return the letters of a sequence, shuffled within windows."""
    windows = [letters[start : start + WINDOW] for start in range(0, len(letters), WINDOW)]
    return "".join("".join(random.sample(window, len(window))) for window in windows)


def draw_scores(axes: Axes, hit: swsearch.Hit, chance: list[int]) -> None:
    """Draw the scores of shuffled copies as bars, and the score of the hit as a line."""
    edges = [edge - 0.5 for edge in range(20, 242, 4)]
    axes.hist(chance, edges, color=GREY)
    axes.axvline(hit.score, color=RED, lw=2)
    on_left = hit.score > 180
    axes.annotate(
        f"score {hit.score}",
        (hit.score, 0.8),
        (-5 if on_left else 5, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if on_left else "left",
        color=RED,
    )
    axes.set(xlim=(20, 220), yticks=[])
    axes.spines[["top", "right", "left"]].set_visible(False)


def draw_coverage(axes: Axes, hit: swsearch.Hit) -> None:
    """Draw query and subject as bars of equal width, each with its aligned part."""
    sides = (("query", hit.query_range, hit.query_length), ("subject", hit.subject_range, hit.subject_length))
    for y, (name, (begin, end), length) in enumerate(sides):
        axes.barh(y, 100, color="#e6e6e6", height=0.5)
        axes.barh(y, 100 * (end - begin) / length, left=100 * begin / length, color=BLUE, height=0.5)
        axes.text(103, y, f"{100 * (end - begin) / length:.0f}%", va="center")
        axes.text(-3, y, name, va="center", ha="right")
    axes.set(xlim=(-28, 122), ylim=(1.9, -0.9))
    axes.axis("off")


def draw() -> Figure:
    """Return the figure: a row for each pair."""
    random.seed(1)
    figure = Figure(figsize=(8, 5.4), layout="constrained", facecolor="white")
    grid = figure.subplots(len(PAIRS), 2, width_ratios=(5, 3))
    with swsearch.Database.from_fasta([DATA / "swissprot_sample.fasta.gz"]) as database:
        for (verdict, (query, subject)), (left, right) in zip(PAIRS.items(), grid, strict=True):
            letters_of = {name: database.sequence(database.find(name)[0]) for name in (query, subject)}
            result = next(swsearch.search([(query, letters_of[query])], database))
            hit = next(hit for hit in result if subject in hit.subject_id)
            copies = [shuffled(letters_of[subject]) for _ in range(COPIES)]
            draw_scores(left, hit, swsearch.score([letters_of[query]], copies)[0].tolist())
            identity = 100 * hit.identities / hit.pair.length
            left.set_title(f"{verdict}: {query} and {subject}, E-value {hit.evalue:.2g}", loc="left", fontsize=11)
            draw_coverage(right, hit)
            right.set_title(f"Aligned part, {identity:.0f}% identical", fontsize=10)
    grid[-1][0].set_xlabel("Score; grey: the subject's sequence, shuffled 1,000 times")
    return figure


if __name__ == "__main__":
    target = Path(__file__).with_name("interpret.png")
    drawn = io.BytesIO()
    draw().savefig(drawn, dpi=DPI)
    Image.open(drawn).convert("RGB").quantize(64).save(target, optimize=True, dpi=(DPI, DPI))
    print(f"{target.name}: {target.stat().st_size / 1e3:.0f} kB")
