"""Check and time the kernels of published approaches, as `swsearch bench study` does, with the committed settings.

Every variant in `swsearch/bench/study/variants.py` fills matrices that are compared cell by cell; then pairs of 1,024
to 37,000 are timed, a database of 131,072 made-up subjects for the inter-task kernels, sweeps over tiles, threads and
concurrent kernels at one size, and parasail on one thread of the CPU beside them, in the same run.

Needs: an NVIDIA GPU with 30 GiB free, parasail, a quiet machine; about four minutes. Plots take matplotlib.
Run:   python -m benchmarks.speed.study --out benchmarks/results/study.txt [--json FILE] [--plot FILE.png]
       python -m benchmarks.speed.study --draw FILE.json --plot FILE.png    only draws; no GPU is needed
The numbers (--json, 200 kB) and the plot are kept where you say; only the text is committed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.support.common import arguments, finish
from swsearch.bench.study.plots import check_matplotlib, report, save_overview, summary
from swsearch.bench.study.runner import SIZES, Settings, StudyResults, run_study
from swsearch.bench.study.variants import APPROACHES
from swsearch.errors import InputError


def read_options() -> argparse.Namespace:
    """Read the command line; a plot that cannot be drawn is refused before anything is measured."""
    parser = arguments(__doc__, files=False)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw all plots here, .png or .svg")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="measure nothing: draw what --json wrote")
    parser.add_argument("--approach", action="append", choices=APPROACHES, help="default: all")
    parser.add_argument("--sizes", type=lambda text: [int(one) for one in text.split(",")], default=SIZES)
    parser.add_argument("--budget", type=float, default=200, help="seconds after which nothing more is timed")
    parser.add_argument("--device", type=int, help="which GPU")
    options = parser.parse_args()
    if options.draw is not None and options.plot is None:
        parser.error("--draw: needs --plot FILE")
    if options.plot is not None:
        try:
            check_matplotlib()
        except InputError as error:
            parser.error(f"--plot: {error}")
    return options


def main() -> None:
    options = read_options()
    if options.draw is not None:
        save_overview(json.loads(options.draw.read_text(encoding="utf-8")), options.plot)
        return

    def save(results: StudyResults) -> None:  # after each part, so that nothing is lost when time runs out
        if options.json is not None:
            options.json.write_text(json.dumps(results.as_json(), indent=1) + "\n", encoding="utf-8")
        if options.out is not None:
            options.out.write_text("\n".join(report(results)) + "\n", encoding="utf-8")

    settings = Settings(options.approach or APPROACHES, options.sizes, device=options.device, budget=options.budget)
    results = run_study(settings, lambda text: print(text, flush=True), save)
    if options.plot is not None:
        save_overview(results.as_json(), options.plot)
    finish(summary(results), None)
    if results.failures:
        sys.exit(3)


if __name__ == "__main__":
    main()
