"""Draw GCUPS by query length from the results of `gpu.py`, beside CUDASW++4.0's on an H100.

Needs: pip install matplotlib.
Run:   python -m benchmarks.speed.gpu_plot results/gpu.json -o gpu.svg [-o gpu.png]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.speed.gpu_report import CUDASW, CUDASW_BATCH

OURS, DPX, HALF2 = "#0b5cad", "#c8511b", "#8a6d3b"
"""Colours that also differ in grey and for the colour-blind."""

TICKS = (150, 250, 400, 600, 1000, 1500, 2500, 4000, 5500)


def draw_peer(axes: Axes, kind: str, label: str, colour: str, marker: str) -> None:
    """Draw CUDASW++4.0's lengths and the mean of its batch, which is the queries one after the other."""
    points = sorted(CUDASW[kind].items())
    axes.plot([n for n, _ in points], [gcups for _, gcups in points], marker, color=colour, ms=6, ls=":", lw=1.2,
              label=f"{label}, kernel")  # fmt: skip
    axes.axhline(CUDASW_BATCH[kind], color=colour, ls="--", lw=1, label=f"{label}, all 20: {CUDASW_BATCH[kind]:,}")


def draw(results: dict[str, Any]) -> plt.Figure:
    """Return the figure."""
    about = results["about"]
    with plt.rc_context({"font.size": 10}):
        figure, axes = plt.subplots(figsize=(8.4, 5.2), layout="constrained")
        singles = sorted((one["length"], one["gcups"]) for one in results["singles"]["queries"])
        lengths, rates = zip(*singles, strict=True)
        axes.plot(lengths, rates, "o-", color=OURS, ms=5, lw=1.8, label="swsearch, one query at a time, kernel")
        batch = results.get("batch")
        if batch:
            text = f"swsearch, all {about['queries']} at once: {batch['gcups']:,.0f}"
            axes.axhline(batch["gcups"], color=OURS, ls="--", lw=1.6, label=text)
        draw_peer(axes, "dpx", "CUDASW++4.0 --dpx (H100)", DPX, "s")
        draw_peer(axes, "half2", "CUDASW++4.0 half2 (H100)", HALF2, "^")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(TICKS))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlim(min(lengths) * 0.92, max(lengths) * 1.08)
        axes.set_ylim(0, max(*rates, batch["gcups"] if batch else 0, 4100) * 1.08)
        axes.set_xlabel("query length, residues")
        axes.set_ylabel("GCUPS (10⁹ cells a second)")
        axes.set_title(
            f"swsearch on {about['device']}, {about['date'][:10]}: {about['queries']} queries x "
            f"{about['subjects']:,} subjects, {about['residues'] / 1e6:,.1f} M residues",
            fontsize=10.5, loc="left",
        )  # fmt: skip
        axes.grid(True, color="0.9", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower right", fontsize=9, frameon=True, framealpha=1, edgecolor="0.85")
        figure.text(
            0.995, 0.003, f"kernels {about['kernels'][:12]}, driver's CUDA {about['driver_cuda']}; CUDASW++4.0: CUDA "
            "13.0, November 2026, same queries and database", ha="right", va="bottom", fontsize=7, color="0.4",
        )  # fmt: skip
        figure.get_layout_engine().set(rect=(0, 0.03, 1, 0.97))
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="JSON that gpu.py wrote, with the part singles")
    parser.add_argument("-o", "--out", type=Path, action="append", required=True, metavar="FILE", help=".svg or .png")
    options = parser.parse_args()
    mpl.use("agg")  # no display is needed
    mpl.rcParams["svg.hashsalt"] = "swsearch"  # the same results give the same bytes
    results = json.loads(options.results.read_text(encoding="utf-8"))
    if "singles" not in results:
        parser.error(f"{options.results}: lacks the part singles")
    if wrong := [path for path in options.out if path.suffix not in (".svg", ".png")]:
        parser.error(f"{wrong[0]}: expected .svg or .png")
    figure = draw(results)
    for path in options.out:
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else {})


if __name__ == "__main__":
    main()
