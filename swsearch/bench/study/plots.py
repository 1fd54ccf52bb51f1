"""Plots and reports of the study.

They come from the rows of a results file. Plots need matplotlib (``pip install 'swsearch[plot]'``). The same results
give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swsearch.bench.study.runner import StudyResults
from swsearch.bench.study.timing import NAMES, Measurement
from swsearch.bench.study.variants import APPROACHES
from swsearch.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


ResultRow = dict[str, Any]

COLOURS = ("#0b5cad", "#c8511b", "#3a7d44", "#8a3d8f", "#8a6d3b", "#444444", "#c2185b", "#00838f")
MARKERS = "os^Dvp*X"


def check_matplotlib() -> None:
    """Raise `InputError` if there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise InputError("--plot needs matplotlib; pip install 'swsearch[plot]'") from None


def _lines(
    axes: Axes, rows: Iterable[ResultRow], x: tuple[str, str], label: Callable[[ResultRow], str],
    y: tuple[str, str] = ("gcups", "GCUPS"), *, log: bool = False,
) -> None:  # fmt: skip
    """Draw one line per label over an axis of powers of two; ``x`` and ``y`` are columns and their captions."""
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        series.setdefault(label(row), []).append((row[x[0]], row[y[0]]))
    for number, (name, points) in enumerate(series.items()):
        xs, ys = zip(*sorted(points), strict=True)
        axes.plot(
            xs, ys, marker=MARKERS[number % len(MARKERS)], color=COLOURS[number % len(COLOURS)], ms=4, lw=1.4,
            ls="-" if number < len(COLOURS) else "--", label=name,
        )  # fmt: skip
    if len(series) > len(COLOURS):  # so many names would cover the lines
        axes.legend(fontsize=6.5, frameon=False, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.13))
    elif series:
        axes.legend(fontsize=6.5, frameon=False)
    axes.set_xscale("log", base=2)
    if log:
        axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(True, color="0.9", lw=0.8)
    axes.set_axisbelow(True)
    _caption(axes, x[1], y[1])


def _caption(axes: Axes, x: str, y: str = "GCUPS") -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)


def _bars(axes: Axes, values: dict[str, dict[str, float]], caption: str, **ticks: Any) -> None:
    """Draw GCUPS by group, one colour per series of ``values``."""
    groups = list(dict.fromkeys(group for series in values.values() for group in series))
    for number, (label, series) in enumerate(values.items()):
        places = [groups.index(group) + 0.4 * number - 0.2 for group in series]
        axes.bar(places, list(series.values()), 0.38, color=COLOURS[number], label=label)
    axes.set_xticks(range(len(groups)), groups, **ticks)
    _caption(axes, caption)
    if groups:
        axes.legend(fontsize=7, frameon=False)


def _name(row: ResultRow) -> str:
    short = row["variant"].split(", 256 threads")[0].replace(" of 1024 rows", "").replace(" at a time", "")
    if _is_ours(row):
        return f"{row['variant']} ({'protein' if row['approach'] == 'strips' else 'DNA'})"
    return f"{row['approach']}: {short}"


def _is_ours(row: ResultRow) -> bool:
    return bool(row["paper"] == "this project")


def _sized(quantity: str, caption: str) -> Callable[[Axes, list[ResultRow]], None]:
    def draw(axes: Axes, rows: list[ResultRow]) -> None:
        pairs = [row for row in rows if row["approach"] != "inter-task" and not row["sweep"]]
        chosen = [row for row in pairs if row["gaps"] == pairs[0]["gaps"]]
        # the best form of each approach and memory, or the legend hides the plot
        x = ("rows", "length of both sequences")
        _lines(axes, _best_of_each(chosen), x, _name, (quantity, caption), log=True)

    return draw


def _best_of_each(rows: list[ResultRow]) -> list[ResultRow]:
    best: dict[str, tuple[float, str]] = {}
    ours = [row for row in rows if _is_ours(row) and row["mode"] == "global"]
    for row in (row for row in rows if not _is_ours(row)):
        kind = f"{row['approach']} {'shared' in row['variant']} {row['mode']} {'launches' in row['variant']}"
        if kind not in best or row["gcups"] > best[kind][0]:
            best[kind] = (row["gcups"], row["variant"])
    names = {name for _, name in best.values()}
    return [row for row in rows if row["variant"] in names] + ours


def _tiles(axes: Axes, rows: list[ResultRow]) -> None:
    chosen = [row for row in rows if row["approach"] == "diagonal-blocks" and not _is_ours(row)]
    size = max((row["rows"] for row in chosen if row["sweep"]), default=0)
    gaps = chosen[0]["gaps"] if chosen else ""
    at_size = [row for row in chosen if row["rows"] == size and row["gaps"] == gaps]
    series = {
        f"{memory} memory": {
            row["variant"].split(",")[0]: row["gcups"] for row in at_size if row["variant"].endswith(memory)
        }
        for memory in ("global", "shared")
    }
    _bars(axes, series, f"rows x columns of a block, pair of {size:,}")


def _at_sweep(rows: list[ResultRow], approach: str) -> list[ResultRow]:
    """Return the rows of a sweep, with those of the same size and gaps that are timed at every size."""
    chosen = [row for row in rows if row["approach"] == approach]
    swept = [row for row in chosen if row["sweep"]]
    if not swept:
        return []
    size, gaps = swept[0]["rows"], swept[0]["gaps"]
    return [row for row in chosen if (row["rows"], row["gaps"]) == (size, gaps)]


def _pair_size(rows: list[ResultRow]) -> str:
    return f"pair of {rows[0]['rows'] if rows else 0:,}"


def _threads(axes: Axes, rows: list[ResultRow]) -> None:
    chosen = [row for row in _at_sweep(rows, "skewed") if "storage" not in row["variant"]]
    x = ("threads", f"threads of a block, {_pair_size(chosen)}")
    _lines(axes, chosen, x, lambda row: row["variant"].rsplit(",", 1)[0])


def _kernels(axes: Axes, rows: list[ResultRow]) -> None:
    swept = [row for row in _at_sweep(rows, "strips") if row["mode"] == "global" and "concurrent" in row["extra"]]
    chosen = [row | row["extra"] for row in swept]
    x = ("concurrent", f"concurrent kernels, {_pair_size(chosen)}")
    _lines(axes, chosen, x, lambda row: f"{row['threads']:,} rows, {row['variant'].rsplit(', ', 1)[1]}")


def _queries(axes: Axes, rows: list[ResultRow]) -> None:
    chosen = [row for row in rows if row["approach"] == "inter-task" and not row["sweep"] and row["gaps"] == "affine"]
    _lines(axes, chosen, ("rows", "query length, inter-task"), lambda row: row["variant"].split(",")[0], log=True)


def _grids(axes: Axes, rows: list[ResultRow]) -> None:
    chosen = [row for row in _at_sweep(rows, "inter-task") if row["blocks"]]
    series = {
        f"buffers in {buffers} memory": {
            f"{row['blocks']}\nx {row['threads']}": row["gcups"]
            for row in chosen
            if row["variant"].startswith(buffers)
        }
        for buffers in ("global", "shared")
    }
    _bars(axes, series, "blocks x threads, inter-task", fontsize=7)


PANELS: dict[str, Callable[[Axes, list[ResultRow]], None]] = {
    "time": _sized("seconds", "seconds on the GPU"),
    "gcups": _sized("gcups", "GCUPS"),
    "speedup": _sized("speedup", "times one CPU thread (parasail nw/sw)"),
    "tiles": _tiles,
    "threads": _threads,
    "kernels": _kernels,
    "queries": _queries,
    "grids": _grids,
}
"""Names of the plots, which are names of files too."""


def save_plots(results: dict[str, Any], folder: Path) -> list[Path]:
    """Draw every plot into a folder, as ``study_time.svg`` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, draw in PANELS.items():
        figure = _figure(results, {name: draw}, 1, (6.4, 4.2))
        paths.append(folder / f"study_{name}.svg")
        _save(figure, paths[-1])
    return paths


def save_overview(results: dict[str, Any], path: Path) -> None:
    """Draw all plots into one file."""
    _save(_figure(results, PANELS, 2, (12.5, 17.0)), path)


def _figure(
    results: dict[str, Any], panels: dict[str, Callable[[Axes, list[ResultRow]], None]], width: int,
    size: tuple[float, float],
) -> Figure:  # fmt: skip
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    about = results["about"]
    with rc_context({"font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(-(-len(panels) // width), width, squeeze=False)
        for draw, one in zip(panels.values(), axes.flat, strict=False):
            draw(one, results["rows"])
        figure.suptitle(f"Kernel study, {about['device']}, {about['date'][:10]}", fontsize=10)
    return figure


def _save(figure: Figure, path: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "swsearch"}):
        figure.savefig(path, metadata={"Date": None})


HEADINGS = (
    "variant", "gaps", "query x subject", "matrix checked, cells", "launches", f"{NAMES[0]}, s", f"{NAMES[1]}, s",
    "GPU, s", "GCUPS", "speed-up", "GPU memory, MiB",
)  # fmt: skip

SUMMARY = ("variant", "gaps", "query x subject", "GPU, s", "GCUPS", "speed-up")


def report(results: StudyResults) -> list[str]:
    """Return the lines of a whole report."""
    about = results.about
    lines = [
        f"{about['device']}, {about['multiprocessors']} multiprocessors; {about['processor']}; {about['date']}",
        f"swsearch {about['swsearch']}, pycuda {about['pycuda']}, parasail {about['parasail']}, kernels "
        f"{about['kernels'][:12]}",
        "",
        "GPU: median by CUDA events, all launches of a run, the boundary's too; strips with the copy of all "
        "directions to the host.",
        f"CPU: {NAMES[0]} on one thread, plain C without vector instructions, is what speed-up refers to;",
        f"{NAMES[1]} is its vectorised form. Both compute the score alone. For a database both scored a sample,",
        "scaled to all residues.",
    ]
    if "launch_microseconds" in about:
        lines.append(
            f"A launch from Python costs {about['launch_microseconds']:.1f} us, many in a row: the bound of what "
            "launches once a diagonal."
        )
    for approach in APPROACHES:
        rows = [row for row in results.rows if row.approach == approach]
        if rows:
            lines += ["", f"## {approach} ({rows[0].paper})", "", *table(HEADINGS, map(_cells, rows)), *_walks(rows)]
        for batch in results.batches if approach == "strips" else []:
            lines += [
                "",
                f"Batch of {batch['pairs']} pairs of {batch['length']:,}, {batch['gaps']} gaps, with alignments: "
                f"{batch['seconds']:.3f} s in turn, {batch['overlapped_seconds']:.3f} s with each traceback beside "
                "the next matrix.",
            ]
    if results.failures:
        lines += ["", "WRONG:", *(f"- {text}" for text in results.failures)]
    if results.skipped:
        lines += ["", "Not run:", *(f"- {text}" for text in results.skipped)]
    return lines


def summary(results: StudyResults) -> list[str]:
    """Return a short table: every variant at the largest size that it was timed with, else what was checked."""
    best: dict[tuple[str, str], Measurement] = {}
    for row in results.rows:
        key = (row.approach, row.variant)
        if key not in best or row.rows > best[key].rows:
            best[key] = row
    lines = table(SUMMARY, (_short(row) for row in best.values())) if best else []
    checked = sum(results.checks.values())
    lines.append(f"matrix checked: {checked:,} cells of {len(results.checks)} variants, all as the reference says")
    return [*lines, *(f"WRONG: {text}" for text in results.failures)]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a markdown table's lines, columns aligned."""
    body = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(row[place]) for row in body) for place in range(len(columns))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in body
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _size(row: Measurement) -> str:
    return f"{row.rows:,} x {row.columns:,}"


def _cells(row: Measurement) -> list[str]:
    return [
        row.variant, row.gaps, _size(row), f"{row.checked:,}" if row.checked else "by its own tests",
        f"{row.launches:,}" if row.launches else "", f"{row.cpu_seconds:.4f}", f"{row.vector_seconds:.4f}",
        f"{row.seconds:.5f}", f"{row.gcups:,.2f}", f"{row.speedup:,.1f}",
        f"{row.extra['device_bytes'] / 2**20:,.1f}" if "device_bytes" in row.extra else "",
    ]  # fmt: skip


def _walks(rows: list[Measurement]) -> list[str]:
    """Return what the traceback on the CPU adds, for variants that have it."""
    walked = [row for row in rows if "traceback_seconds" in row.extra]
    columns = ("variant", "gaps", "query x subject", "matrix on the GPU, s", "traceback on the CPU, s")
    cells = (
        [row.variant, row.gaps, _size(row), f"{row.seconds:.4f}", f"{row.extra['traceback_seconds']:.4f}"]
        for row in walked
    )
    return ["", *table(columns, cells)] if walked else []


def _short(row: Measurement) -> list[str]:
    return [
        f"{row.approach}: {row.variant}", row.gaps, _size(row), f"{row.seconds:.5f}", f"{row.gcups:,.2f}",
        f"{row.speedup:,.1f}",
    ]  # fmt: skip
