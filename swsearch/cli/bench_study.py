"""``swsearch bench study``: parse, call, print."""

# no postponed annotations: the kinds of the options follow from them
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from swsearch.cli.console import command
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.tables import CommandTable, FileName
from swsearch.errors import EngineError, OptionError
from swsearch.options.kinds import Integer, Repeated
from swsearch.options.numbers import parse_integer
from swsearch.options.row import option


class OneDevice(Integer):
    """The number of a GPU."""

    def parse(self, name: str, text: str) -> int:
        """Parse a number; other text is refused in the same words as a wrong number."""
        number = parse_integer(text)
        return self.check(name, text if number is None else number)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StudyTable(CommandTable):
    """What of published kernels is measured."""

    approach: tuple[str, ...] = option(
        (),
        "diagonal-blocks, element-diagonals, skewed, strips or inter-task; may be given several times.",
        Repeated(),
        unset="all",
        metavar="NAME",
    )
    sizes: str = option("1024,4096,16384", "Lengths of the pairs to time.", metavar="N,...")
    gaps: str = option("both", "linear, affine or both.", metavar="KIND")
    json: str | None = option(None, "Also write all numbers here.", FileName())
    plot: str | None = option(None, "Also write plots here, as SVG; needs matplotlib.", metavar="FOLDER")
    check_only: bool = option(False, "Check the matrices without timing.")
    device: int | None = option(
        None,
        "GPU to use, only one.",
        OneDevice(0, expected="the number of one GPU, since kernels are studied on one"),
        unset="the one with the most multiprocessors",
    )


@command
@takes(command_rows(StudyTable))
def bench_study(**given: Any) -> None:
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

    asked = StudyTable.of(given)
    settings = Settings(
        asked.approach or APPROACHES,
        _numbers(asked.sizes),
        ("linear", "affine") if asked.gaps == "both" else (asked.gaps,),
        asked.check_only,
        asked.device,
    )
    if asked.plot is not None:
        check_matplotlib()
    if not asked.check_only:
        check_parasail()

    def save(results: StudyResults) -> None:
        if asked.json is not None:
            Path(asked.json).write_text(json.dumps(results.as_json(), indent=1) + "\n", encoding="utf-8")

    results = run_study(settings, typer.echo, save)
    typer.echo("\n".join(["", *report(results), "", *summary(results)]))
    if asked.plot is not None:
        save_plots(results.as_json(), Path(asked.plot))
    if results.failures:
        raise EngineError(f"{len(results.failures)} variants are wrong, the first: {results.failures[0]}")


def _numbers(text: str) -> tuple[int, ...]:
    numbers = [parse_integer(part) for part in text.split(",")]
    if None in numbers:
        raise OptionError("sizes", text, "whole numbers with commas between them")
    return tuple(each for each in numbers if each is not None)
