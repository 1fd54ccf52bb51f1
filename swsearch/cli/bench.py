"""``swsearch bench`` and what is under it; without a subcommand it is ``bench search``."""

from __future__ import annotations

from typing import Annotated

import typer

from swsearch.cli.bench_align import bench_align
from swsearch.cli.bench_study import bench_study
from swsearch.cli.console import checked_threads, command
from swsearch.cli.numbers import whole
from swsearch.cli.options import RUNS_OPTION, ThreadsOption
from swsearch.cli.usage import CommandGroup, OneCommand
from swsearch.errors import InputError


class BenchGroup(CommandGroup):
    """A group that takes ``swsearch bench QUERIES SUBJECTS`` for ``swsearch bench search QUERIES SUBJECTS``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put the subcommand in where there is none."""
        if not args or args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["search", *args]
        return super().parse_args(ctx, args)


bench_app = typer.Typer(
    cls=BenchGroup,
    help="Measure throughput on this machine: whole searches (search, also without the word), one pair (align), "
    "published kernels (study).",
)


@bench_app.command("search", cls=OneCommand)
@command
def bench_search(
    queries: Annotated[str | None, typer.Argument(metavar="[QUERIES]", help="FASTA file.")] = None,
    subjects: Annotated[str | None, typer.Argument(metavar="[SUBJECTS]", help="FASTA file.")] = None,
    peers: Annotated[bool, typer.Option(help="Run the peers that are installed beside it.")] = True,
    runs: Annotated[
        int, typer.Option(parser=RUNS_OPTION, metavar="N", help="Runs of each, 1 to 1,000; the median counts.")
    ] = 3,
    top: Annotated[
        int,
        typer.Option(
            parser=whole("a whole number >= 1", least=1), metavar="N", help="Hits with alignments per query."
        ),
    ] = 10,
    threads: ThreadsOption = None,
) -> None:
    """Measure the throughput of each engine here, and of installed peers, in one run.

    Without files: 4 made-up queries against 10,000 made-up subjects of protein-like lengths.
    """
    from swsearch.bench.searches import measure, print_table
    from swsearch.engines.choice import checked
    from swsearch.processors import available_processors

    if (queries is None) != (subjects is None):
        raise InputError("bench takes both QUERIES and SUBJECTS, or neither")
    used = checked_threads(checked("threads", threads)) or available_processors()
    print_table(measure(queries, subjects, peers=peers, runs=runs, top=top, threads=used))


bench_app.command("align", cls=OneCommand)(bench_align)
bench_app.command("study", cls=OneCommand)(bench_study)
