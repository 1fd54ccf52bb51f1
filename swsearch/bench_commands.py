"""``swsearch bench`` and what is under it; without a subcommand it is ``bench search``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from swsearch.console import command
from swsearch.errors import EngineError, InputError, OptionError


class BenchGroup(TyperGroup):
    """A group that takes ``swsearch bench QUERIES SUBJECTS`` for ``swsearch bench search QUERIES SUBJECTS``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put the subcommand in where there is none."""
        if not args or args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["search", *args]
        return super().parse_args(ctx, args)


bench_app = typer.Typer(
    cls=BenchGroup,
    help="Measure throughput on this machine: whole searches (search, also without the word), published kernels "
    "(study).",
)


@bench_app.command("search")
@command
def bench_search(
    queries: Annotated[str | None, typer.Argument(metavar="[QUERIES]", help="FASTA file.")] = None,
    subjects: Annotated[str | None, typer.Argument(metavar="[SUBJECTS]", help="FASTA file.")] = None,
    peers: Annotated[bool, typer.Option(help="Run the peers that are installed beside it.")] = True,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each; the median counts.")] = 3,
    top: Annotated[int, typer.Option(min=1, help="Hits with alignments a query.")] = 10,
    threads: Annotated[int | None, typer.Option(help="Worker threads.", show_default="one a processor")] = None,
) -> None:
    """Measure the throughput of each engine here, and of installed peers, in one run.

    Without files: 4 made-up queries against 10,000 made-up subjects of protein-like lengths.
    """
    from swsearch.bench import measure, print_table
    from swsearch.engines.base import available_processors

    if (queries is None) != (subjects is None):
        raise InputError("bench takes both QUERIES and SUBJECTS, or neither")
    print_table(
        measure(queries, subjects, peers=peers, runs=runs, top=top, threads=threads or available_processors())
    )


@bench_app.command("study")
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
        typer.Option(metavar="N", help="Which GPU.", show_default="the one with the most multiprocessors"),
    ] = None,
) -> None:
    """Check published GPU kernels cell by cell, and time them beside the CPU and our own.

    Needs a GPU. Every variant's whole matrix is compared with the reference before anything of it is timed.
    """
    import json

    from swsearch.study.plots import check_matplotlib, save_plots
    from swsearch.study.report import report, summary
    from swsearch.study.runner import Results, Settings, run_study
    from swsearch.study.variants import APPROACHES

    settings = Settings(
        approach or APPROACHES,
        _numbers(sizes),
        ("linear", "affine") if gaps == "both" else (gaps,),
        check_only,
        device,
    )
    if plot is not None:
        check_matplotlib()

    def save(results: Results) -> None:
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
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise OptionError("sizes", text, "whole numbers with commas between them") from None
