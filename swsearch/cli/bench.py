"""``swsearch bench`` and what is under it; without a subcommand it is ``bench search``."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from swsearch.cli.bench_align import RunsTable, bench_align
from swsearch.cli.bench_study import bench_study
from swsearch.cli.console import checked_threads, command
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.tables import EngineTable
from swsearch.cli.usage import CommandGroup, OneCommand
from swsearch.errors import InputError
from swsearch.options.kinds import Integer
from swsearch.options.row import option


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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BenchTable(RunsTable):
    """What searches are measured."""

    peers: bool = option(True, "Run the installed peers too.")
    top: int = option(
        10, "Number of hits with alignments per query.", Integer(1), others="max-hits max-target-seqs k"
    )


@bench_app.command("search", cls=OneCommand)
@command
@takes(
    command_rows(
        BenchTable,
        EngineTable,
        names="peers runs top threads",
        runs={"help": "Number of runs of each, 1 to 1,000; reports the median."},
    )
)
def bench_search(
    queries: Annotated[str | None, typer.Argument(metavar="[QUERIES]", help="FASTA file.")] = None,
    subjects: Annotated[str | None, typer.Argument(metavar="[SUBJECTS]", help="FASTA file.")] = None,
    **given: Any,
) -> None:
    """Measure the throughput of each engine here, and of installed peers, in one run.

    Without files: 4 made-up queries against 10,000 made-up subjects of protein-like lengths.
    """
    from swsearch.bench.searches import measure, print_table
    from swsearch.engines.choice import checked
    from swsearch.processors import available_processors

    if (queries is None) != (subjects is None):
        raise InputError("bench takes both QUERIES and SUBJECTS, or neither")
    threads = checked_threads(checked("threads", EngineTable.of(given).threads)) or available_processors()
    print_table(measure(queries, subjects, threads=threads, **vars(BenchTable.of(given))))


bench_app.command("align", cls=OneCommand)(bench_align)
bench_app.command("study", cls=OneCommand)(bench_study)
