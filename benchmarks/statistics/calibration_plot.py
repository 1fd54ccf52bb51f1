"""The plot of `calibration.py`: chance hits found over those expected.

`calibration.py` draws it; nothing runs here.
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.support import plots

STYLES = {"fitted": "-", "published": ":"}
"""Lines by statistics; other programs' are dashed."""

GOOD = (0.5, 2.0)
"""The grey band: what is found may be so many times what is expected."""

MODES = ("local", "global", "semiglobal")

Row = dict[str, Any]


def draw_panel(axes: Axes, levels: list[float], rows: list[Row], colours: dict[str, Any]) -> None:
    """Draw the rows of one class of queries in one mode, beside what should be found."""
    axes.plot(levels, levels, color="0.4", lw=1)
    low, high = ([share * level for level in levels] for share in GOOD)
    axes.fill_between(levels, low, high, color="0.9", lw=0)
    for row in rows:
        means = [hits / row["searches"] if hits else float("nan") for hits in row["hits"]]
        name = line_name(row)
        style, colour = STYLES.get(row["statistics"], "--"), colours[colour_key(name)]
        axes.plot(levels, means, style, color=colour, lw=1.5, label=name)
    axes.set(xscale="log", yscale="log", xlim=(levels[0], levels[-1]), ylim=(2e-3, 200))
    plots.tidy(axes)


def line_name(row: Row) -> str:
    """Return a line's name in the legend."""
    if row["statistics"] in STYLES:
        return f"swsearch {row['scoring']}, {row['statistics']}"
    return str(row["statistics"])


def colour_key(name: str) -> str:
    """Return what has one colour: a scoring, with any statistics, or a program."""
    return name.partition(",")[0]


def draw(results: dict[str, Any]) -> Figure:
    """Return the figure: a row for each mode, a column for each class of queries."""
    rows, levels = results["rows"], results["levels"]
    modes = [mode for mode in MODES if mode in {row["mode"] for row in rows}]
    classes = list(dict.fromkeys(row["queries"] for row in rows))
    names = sorted({line_name(row) for row in rows}, key=lambda name: (not name.startswith("swsearch"), name))
    colours = dict(zip(dict.fromkeys(map(colour_key, names)), mpl.color_sequences["tab10"], strict=False))
    figure = Figure(figsize=(10, 2.3 * len(modes) + 1.6), layout="constrained")
    grid = figure.subplots(len(modes), len(classes), sharex=True, sharey=True, squeeze=False)
    lines: dict[str, Any] = {}
    for mode, panels in zip(modes, grid, strict=True):
        for kind, axes in zip(classes, panels, strict=True):
            draw_panel(axes, levels, [row for row in rows if (row["mode"], row["queries"]) == (mode, kind)], colours)
            lines |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        panels[0].set_ylabel(mode)
    for kind, top, bottom in zip(classes, grid[0], grid[-1], strict=True):
        top.set_title(kind, fontsize=10.5, loc="left")
        bottom.set_xlabel("E-value", fontsize=9)
    figure.supylabel("chance hits found per query, mean", fontsize=10)
    figure.legend(
        [lines[name] for name in names], names, loc="outside lower center", ncols=4, fontsize=8, frameon=False
    )
    figure.suptitle(results["about"]["what"], fontsize=9, x=0.01, ha="left")
    return figure
