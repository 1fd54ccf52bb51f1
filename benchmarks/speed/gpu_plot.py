"""The plot of `gpu.py`: GCUPS by query length, beside CUDASW++4.0's. `gpu.py` draws it; nothing runs here."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.support import plots

OURS, THEIRS = "#0b5cad", "#c8511b"
"""Colours that also differ in grey and for the colour-blind."""

TICKS = (150, 250, 400, 600, 1000, 1500, 2500, 4000, 5500)

Results = dict[str, Any]


def draw_ours(axes: Axes, results: Results) -> None:
    """Draw each query alone as a curve, and all at once as a line across."""
    singles = sorted((one["length"], one["gcups"]) for one in results["singles"]["queries"])
    lengths, rates = zip(*singles, strict=True)
    axes.plot(lengths, rates, "o-", color=OURS, ms=5, lw=1.8, label="swsearch, one query at a time, kernel")
    if batch := results.get("batch"):
        label = f"swsearch, all {results['about']['queries']} at once: {batch['gcups']:,.0f}"
        axes.axhline(batch["gcups"], color=OURS, ls="--", lw=1.6, label=label)
    axes.set_xlim(min(lengths) * 0.92, max(lengths) * 1.08)


def draw_cudasw(axes: Axes, results: Results) -> None:
    """Draw its rate for each query, and of all, one after the other."""
    lengths = [one["length"] for one in results["singles"]["queries"]]
    theirs, name = results["cudasw"], "CUDASW++4.0 --dpx"
    pairs = sorted(zip(lengths, theirs["queries"], strict=True))
    axes.plot(
        *zip(*pairs, strict=True), "s", color=THEIRS, ms=5, ls=":", lw=1.2, label=f"{name}, one query at a time"
    )
    label = f"{name}, all {len(pairs)}, one after the other: {theirs['gcups']:,.0f}"
    axes.axhline(theirs["gcups"], color=THEIRS, ls="--", lw=1, label=label)


def draw(results: Results) -> Figure:
    """Return the figure of a results file that has the part ``singles``."""
    about = results["about"]
    figure = Figure(figsize=(8.4, 5.2), layout="constrained")
    axes = figure.subplots()
    draw_ours(axes, results)
    if "cudasw" in results:
        draw_cudasw(axes, results)
    axes.set_ylim(bottom=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("query length, residues")
    axes.set_ylabel("GCUPS (10⁹ cells a second)")
    axes.set_title(
        f"{about['device']}, {about['date'][:10]}: {about['queries']} queries x {about['subjects']:,} subjects, "
        f"{about['residues'] / 1e6:,.1f} M residues",
        fontsize=10.5, loc="left",
    )  # fmt: skip
    plots.tidy(axes)
    axes.legend(loc="lower right", fontsize=9, frameon=True, framealpha=1, edgecolor="0.85")
    figure.supxlabel(
        f"kernels {about['kernels'][:12]}, driver's CUDA {about['driver_cuda']}",
        fontsize=7.5, color="0.4", x=0.99, ha="right",
    )  # fmt: skip
    return figure
