"""The plot of `sensitivity.py`: relatives found against wrong hits per query, as the E-value threshold grows.

`sensitivity.py` draws it; nothing runs here.
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator, PercentFormatter

from benchmarks.support import plots

COLOURS = {
    "swsearch": "#0b5cad", "blastp": "#c8511b", "diamond": "#2f7d4f", "mmseqs2": "#8a6d3b", "ssearch36": "#7a4a9e",
    "phmmer": "#b0307a",
}  # fmt: skip
"""By the first word of a name; they also differ for the colour-blind."""

SETTINGS = mpl.color_sequences["Dark2"]
"""Of swsearch's settings, in turn; the first has swsearch's colour."""

FIRST, MOST = 5, 10.0
"""The plot begins at so many wrong hits of all queries, fewer being chance, and ends at so many per query."""

Points = list[list[float]]
"""Wrong hits per query, and coverage."""


def _program(name: str) -> str:
    return name.partition(" ")[0]


def style_of(name: str, place: int, of_settings: bool) -> dict[str, Any]:
    """Return how a line looks: the place is that among its program's lines of the panel."""
    colour = COLOURS.get(_program(name), "0.4")
    if place == 0:
        return {"color": colour, "lw": 2.2}
    if of_settings:
        return {
            "color": SETTINGS[(place - 1) % len(SETTINGS)],
            "ls": "--" if place > len(SETTINGS) else "-",
            "lw": 1.1,
        }
    return {"color": colour, "ls": "--", "lw": 1.1}


def draw_panel(axes: Axes, curves: dict[str, Points], title: str, begin: float) -> None:
    """Draw some of the curves."""
    used: dict[str, int] = {}
    of_settings = len({_program(each) for each in curves}) == 1
    for name, points in curves.items():
        program = _program(name)
        place = used[program] = used.get(program, -1) + 1
        label = name.removeprefix(f"{program} ") if of_settings else name
        errors, coverage = zip(*points, strict=True)
        axes.plot(errors, coverage, label=label, **style_of(name, place, of_settings))
    axes.set_xscale("log")
    axes.set_xlim(begin, MOST)
    axes.set_title(title, fontsize=10.5, loc="left")
    axes.yaxis.set_major_locator(MultipleLocator(0.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("wrong hits (another fold) per query")
    plots.tidy(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), ncols=2, fontsize=8,
                handlelength=1.5, columnspacing=1, frameon=False)  # fmt: skip


def draw(results: dict[str, Any]) -> Figure:
    """Return the figure: programs on the left, swsearch's settings on the right."""
    about = results["about"]
    curves: dict[str, Points] = results["curves"]
    begin = FIRST * about["least"]
    ours = {name: points for name, points in curves.items() if _program(name) == "swsearch"}
    peers = {name: points for name, points in curves.items() if name not in list(ours)[1:]}
    shown = [coverage for points in curves.values() for errors, coverage in points if begin <= errors <= MOST]
    figure = Figure(figsize=(9, 5.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    draw_panel(panels[0], peers, "programs", begin)
    draw_panel(panels[1], ours, "swsearch's settings", begin)
    panels[0].set_ylim(min(shown, default=0.0) * 0.97, max(shown, default=1.0) * 1.03)
    panels[0].set_ylabel("share of a query's superfamily found, mean")
    figure.suptitle(
        f"SCOPe 40: {about['queries']:,} of {about['domains']:,} domains against all, as the E-value threshold "
        f"grows, {about['date'][:10]}",
        fontsize=10.5, x=0.01, ha="left",
    )  # fmt: skip
    return figure
