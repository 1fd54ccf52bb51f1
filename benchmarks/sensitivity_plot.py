"""Draw the curves of `sensitivity.py`: relatives found against wrong hits a query, as the E-value threshold grows.

Needs: pip install matplotlib.
Run:   python benchmarks/sensitivity_plot.py results/sensitivity.json -o sensitivity.svg [-o sensitivity.png]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator, PercentFormatter

COLOURS = {
    "swsearch": "#0b5cad", "blastp": "#c8511b", "diamond": "#2f7d4f", "mmseqs2": "#8a6d3b", "ssearch36": "#7a4a9e",
}  # fmt: skip
"""By the first word of a name; they also differ for the colour-blind."""

DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (7, 3)))
"""Of the contenders of one colour, in turn."""

FIRST, MOST = 5, 10.0
"""The plot begins at so many wrong hits of all queries, fewer being chance, and ends at so many a query."""


def draw(results: dict[str, Any]) -> Figure:
    """Return the figure."""
    about = results["about"]
    used: dict[str, int] = {}
    with plt.rc_context({"font.size": 10}):
        figure, axes = plt.subplots(figsize=(8.4, 6.2), layout="constrained")
        begin = FIRST * about["least"]
        shown: list[float] = []
        for name, points in results["curves"].items():
            shown += [coverage for errors, coverage in points if begin <= errors <= MOST]
            program = name.split()[0]
            place = used[program] = used.get(program, -1) + 1
            axes.plot(
                [errors for errors, _ in points], [coverage for _, coverage in points],
                color=COLOURS.get(program, "0.4"), ls=DASHES[place % len(DASHES)],
                lw=2.2 if place == 0 else 1.1, label=name,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(begin, MOST)
        axes.set_ylim(min(shown, default=0.0) * 0.97, max(shown, default=1.0) * 1.03)
        axes.yaxis.set_major_locator(MultipleLocator(0.02))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_xlabel("wrong hits (another fold) a query, as the E-value threshold grows")
        axes.set_ylabel("share of a query's superfamily found, mean")
        axes.set_title(
            f"SCOPe 40: {about['queries']:,} of {about['domains']:,} domains against all, {about['date'][:10]}",
            fontsize=10.5, loc="left",
        )  # fmt: skip
        axes.grid(True, color="0.9", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
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
