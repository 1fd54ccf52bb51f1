"""Draw the curves of `sensitivity.py`: relatives found against wrong hits a query, as the E-value threshold grows.

Needs: pip install matplotlib.
Run:   python -m benchmarks.statistics.sensitivity_plot results/sensitivity.json -o sensitivity.svg [-o
           sensitivity.png]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator, PercentFormatter

COLOURS = {
    "swsearch": "#0b5cad", "blastp": "#c8511b", "diamond": "#2f7d4f", "mmseqs2": "#8a6d3b", "ssearch36": "#7a4a9e",
}  # fmt: skip
"""By the first word of a name; they also differ for the colour-blind."""

SETTINGS = mpl.color_sequences["Dark2"]
"""Of swsearch's settings, in turn; the first has swsearch's colour."""

FIRST, MOST = 5, 10.0
"""The plot begins at so many wrong hits of all queries, fewer being chance, and ends at so many a query."""


Points = list[list[float]]
"""Wrong hits a query, and coverage."""


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
    for name, points in curves.items():
        program = _program(name)
        place = used[program] = used.get(program, -1) + 1
        style = style_of(name, place, len({_program(each) for each in curves}) == 1)
        axes.plot([errors for errors, _ in points], [coverage for _, coverage in points], label=name, **style)
    axes.set_xscale("log")
    axes.set_xlim(begin, MOST)
    axes.set_title(title, fontsize=10.5, loc="left")
    axes.yaxis.set_major_locator(MultipleLocator(0.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xlabel("wrong hits (another fold) a query")
    axes.grid(True, color="0.9", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), ncols=2, fontsize=8, frameon=False)


def draw(results: dict[str, Any]) -> Figure:
    """Return the figure: programs on the left, swsearch's settings on the right."""
    about = results["about"]
    curves: dict[str, Points] = results["curves"]
    begin = FIRST * about["least"]
    ours = {name: points for name, points in curves.items() if _program(name) == "swsearch"}
    peers = {name: points for name, points in curves.items() if name not in list(ours)[1:]}
    shown = [coverage for points in curves.values() for errors, coverage in points if begin <= errors <= MOST]
    with plt.rc_context({"font.size": 10}):
        figure, panels = plt.subplots(1, 2, figsize=(10.5, 6), sharey=True, layout="constrained")
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


def save(stored: Path, out: Path) -> None:
    """Draw a results file; the same results give the same bytes."""
    mpl.use("agg")  # no display is needed
    mpl.rcParams["svg.hashsalt"] = "swsearch"
    figure = draw(json.loads(stored.read_text(encoding="utf-8")))
    figure.savefig(out, dpi=160, metadata={"Date": None} if out.suffix == ".svg" else {})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="JSON that sensitivity.py wrote")
    parser.add_argument("-o", "--out", type=Path, action="append", required=True, metavar="FILE", help=".svg or .png")
    options = parser.parse_args()
    if wrong := [path for path in options.out if path.suffix not in (".svg", ".png")]:
        parser.error(f"{wrong[0]}: expected .svg or .png")
    for path in options.out:
        save(options.results, path)


if __name__ == "__main__":
    main()
