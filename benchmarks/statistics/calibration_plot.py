"""The plot of `calibration.py`: chance hits found over those expected.

`calibration.py` draws it; nothing runs here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.support import plots

STYLES = {"published": ":", "maximum likelihood": "--"}
"""Lines by statistics; fitted ones, which swsearch uses, are solid."""

GOOD = (0.7, 1.4)
"""The grey band: what is found may be so many times what is expected."""

Row = dict[str, Any]


def draw_panel(axes: Axes, levels: list[float], rows: list[Row], colours: dict[str, Any]) -> None:
    """Draw the rows of one kind of queries, beside what should be found."""
    axes.plot(levels, levels, color="0.4", lw=1)
    low, high = ([share * level for level in levels] for share in GOOD)
    axes.fill_between(levels, low, high, color="0.9", lw=0)
    for row in rows:
        means = [hits / row["searches"] if hits else float("nan") for hits in row["hits"]]
        axes.plot(
            levels, means, STYLES.get(row["statistics"], "-"), color=colours[row["scoring"]], lw=1.6,
            label=f"{row['scoring']}: {row['statistics']}",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", ylim=(1e-3, 120), xlabel="E-value: chance hits expected per query")
    plots.tidy(axes)


def draw(results: dict[str, Any]) -> Figure:
    """Return the figure: shuffled sequences on the left, reversed ones on the right."""
    rows, levels = results["rows"], results["levels"]
    colours = dict(zip(sorted({row["scoring"] for row in rows}), mpl.color_sequences["tab10"], strict=False))
    figure = Figure(figsize=(9, 6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, kind in zip(panels, ("shuffled", "reversed"), strict=True):
        draw_panel(axes, levels, [row for row in rows if row["queries"] == kind], colours)
        axes.set_title(f"{kind} sequences", fontsize=10.5, loc="left")
    panels[0].set_ylabel("chance hits found per query, mean")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle(f"swsearch: {results['about']['what']}", fontsize=9, x=0.01, ha="left")
    return figure


def save(results: dict[str, Any], path: Path) -> None:
    """Draw and save."""
    plots.save(draw(results), path)
