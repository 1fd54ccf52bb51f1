"""Check and time the kernels of published approaches, as `swsearch bench study` does, with the committed settings.

Every variant in `swsearch/bench/study/variants.py` fills matrices that are compared cell by cell; then pairs of 1,024
to 37,000 are timed, a database of 131,072 made-up subjects for the inter-task kernels, sweeps over tiles, threads and
concurrent kernels at one size, and parasail on one thread of the CPU beside them, in the same run.

Needs: an NVIDIA GPU with 30 GiB free, parasail, a quiet machine, about four minutes; matplotlib for the plots.
Run:   python -m benchmarks.speed.study [--out benchmarks/results/study.txt] [--budget 200]
       python -m benchmarks.speed.study --draw [--out ...]    draws the plots again from the JSON; no GPU is needed
--out also writes the numbers as JSON (study.json) and, with matplotlib, the plots (study.svg) beside the text.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.support.common import finish
from swsearch.bench.study.plots import check_matplotlib, save_overview
from swsearch.bench.study.report import report, summary
from swsearch.bench.study.runner import SIZES, Settings, StudyResults, run_study
from swsearch.bench.study.variants import APPROACHES
from swsearch.errors import InputError

RESULTS = Path(__file__).resolve().parents[1] / "results" / "study.txt"


def draw(stored: Path) -> None:
    """Draw the plots of a results file beside it, if that can be done here."""
    try:
        check_matplotlib()
    except InputError:
        print(
            "no plots: matplotlib is not installed; "
            f"python -m benchmarks.speed.study --draw --out {stored} makes them"
        )
        return
    save_overview(json.loads(stored.with_suffix(".json").read_text(encoding="utf-8")), stored.with_suffix(".svg"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="default %(default)s")
    parser.add_argument("--approach", action="append", choices=APPROACHES, help="default: all")
    parser.add_argument("--sizes", type=lambda text: [int(one) for one in text.split(",")], default=SIZES)
    parser.add_argument("--budget", type=float, default=200, help="seconds after which nothing more is timed")
    parser.add_argument("--device", type=int, help="which GPU")
    parser.add_argument("--draw", action="store_true", help="only draw the plots again")
    options = parser.parse_args()
    if options.draw:
        draw(options.out)
        return

    def save(results: StudyResults) -> None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(results.as_json(), indent=1) + "\n"
        options.out.with_suffix(".json").write_text(text, encoding="utf-8")
        options.out.write_text("\n".join(report(results)) + "\n", encoding="utf-8")

    settings = Settings(options.approach or APPROACHES, options.sizes, device=options.device, budget=options.budget)
    results = run_study(settings, lambda text: print(text, flush=True), save)
    draw(options.out)
    finish(summary(results), None)
    if results.failures:
        sys.exit(3)


if __name__ == "__main__":
    main()
