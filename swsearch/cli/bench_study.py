"""``swsearch bench study``: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swsearch.cli.console import command
from swsearch.cli.numbers import Refused, whole
from swsearch.errors import EngineError, OptionError


@command
def bench_study(
    approach: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="diagonal-blocks, element-diagonals, skewed, strips or inter-task; may be given several times.",
            show_default="all",
        ),
    ] = None,
    sizes: Annotated[
        str, typer.Option(metavar="N,...", help="Lengths of the pairs that are timed.")
    ] = "1024,4096,16384",
    gaps: Annotated[str, typer.Option(metavar="KIND", help="linear, affine or both.")] = "both",
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write all numbers here too.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write plots here, as SVG; needs matplotlib.")
    ] = None,
    check_only: Annotated[bool, typer.Option("--check-only", help="Check the matrices, time nothing.")] = False,
    device: Annotated[
        int | None,
        typer.Option(
            parser=whole("the number of one GPU, since kernels are studied on one", 0),
            metavar="N",
            help="Which GPU, one.",
            show_default="the one with the most multiprocessors",
        ),
    ] = None,
) -> None:
    """Check published GPU kernels cell by cell, and time them beside the CPU and our own.

    Needs a GPU, and parasail for the times of the CPU. Every variant's whole matrix is compared with the reference
    before anything of it is timed.
    """
    import json

    from swsearch.bench.study.baseline import check_parasail
    from swsearch.bench.study.plots import check_matplotlib, save_plots
    from swsearch.bench.study.report import report, summary
    from swsearch.bench.study.runner import Settings, StudyResults, run_study
    from swsearch.bench.study.variants import APPROACHES

    settings = Settings(
        approach or APPROACHES,
        _numbers(sizes),
        ("linear", "affine") if gaps == "both" else (gaps,),
        check_only,
        device,
    )
    if plot is not None:
        check_matplotlib()
    if not check_only:
        check_parasail()

    def save(results: StudyResults) -> None:
        if json_file is not None:
            Path(json_file).write_text(json.dumps(results.as_json(), indent=1) + "\n", encoding="utf-8")

    results = run_study(settings, typer.echo, save)
    typer.echo("\n".join(["", *report(results), "", *summary(results)]))
    if plot is not None:
        save_plots(results.as_json(), Path(plot))
    if results.failures:
        raise EngineError(f"{len(results.failures)} variants are wrong, the first: {results.failures[0]}")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(whole()(part) for part in text.split(","))
    except Refused:
        raise OptionError("sizes", text, "whole numbers with commas between them") from None
