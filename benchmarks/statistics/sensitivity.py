"""How many relatives a search finds before its errors: SCOPe's domains against each other, beside the peers.

Of the 14,323 domains of SCOPe 2.07, no two of which are more than 40 % identical, --queries of one half of the
superfamilies are searched against all. The contexts of --preset context were trained on proteins that are not similar
to the half `confirmation`, the default. `sensitivity_measures.py` says what counts as right and wrong, and where the
measures come from. A contender's hits are ranked by its own E-values; equal ones by score, then in the order in which
it prints them. The subjects are shuffled, so that the order of the file is of no help.

`CONTENDERS` is the table of programs and settings; a line adds one. Each is run with a threshold far beyond what it
would be used with (--evalue), so that its list does not end before its errors. Seconds stand beside it: one run.
Differences are those of the same queries, against the rows of `AGAINST`.

--gaps compares matrices with gap costs (`SYSTEMS`), as --preset sensitive was chosen: the best on queries of one half
of the superfamilies (--half choice), confirmed on the other, whose luck is its own. Domains are short, and cheap gaps
find most of them; in whole proteins the same gaps string chance matches together. --flank 90 puts random residues
around queries and subjects, which makes them as long as Swiss-Prot's proteins on average.

Needs: ncbi-blast+, diamond-aligner, mmseqs2, fasta3, hmmer (what is not installed is skipped), pandas; matplotlib for
the plot. Raw tables stay in --work, which `iterated.py` can share, and only what is missing or asked otherwise is
measured again. A contender takes two seconds to four minutes on two cores.
Run:   python -m benchmarks.statistics.sensitivity --subjects scop40.fasta.xz --work FOLDER [--queries 2000]
           [--gaps] [--half choice] [--flank 90] [--out benchmarks/results/sensitivity.txt]
       python -m benchmarks.statistics.sensitivity --draw benchmarks/results/sensitivity.json
--out also writes the curves (.json) and, with matplotlib, the plot (.png) beside the text. --draw only draws the plot
again, beside the curves.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.statistics.sensitivity_measures import (
    HALVES,
    Curve,
    Labels,
    curve_of,
    difference,
    drawn_queries,
    flanked,
    foldseek_sensitivity,
    judged,
    read_scope,
    sensitivity,
    thinned,
)
from benchmarks.support import plots
from benchmarks.support.common import Records, arguments, finish, heading, residues, table, write
from benchmarks.support.contenders import Comparison, Contender, Run, run_all, times_line, versions_needed

LOOSE = "--F1 .3 --F2 .1 --F3 .01"
"""Filters of HMMER with which lists are as long as the others'."""

CONTENDERS = [
    Contender("ours-62-fitted", "swsearch", "swsearch"),
    Contender("ours-context", "swsearch --preset context", "swsearch", "--preset context"),
    Contender("ours-sensitive", "swsearch --preset sensitive", "swsearch", "--preset sensitive"),
    Contender("ours-62", "swsearch BLOSUM62 11/1", "swsearch", "--statistics published"),
    Contender("phmmer", "phmmer", "phmmer"),
    Contender("phmmer-loose", "phmmer with loose filters", "phmmer", LOOSE),
    Contender("blastp", "blastp", "blastp"),
    Contender("blastp-0", "blastp -comp_based_stats 0", "blastp", "-comp_based_stats 0"),
    Contender("diamond", "diamond very-sensitive", "diamond", "--very-sensitive"),
    Contender("mmseqs", "mmseqs2 -s 7.5", "mmseqs", "-s 7.5"),
    Contender("ssearch36", "ssearch36 BLOSUM50 10/2", "ssearch36"),
    Contender("ssearch36-62", "ssearch36 BLOSUM62 11/1", "ssearch36", "-s BP62 -f -11 -g -1"),
    Contender(
        "ours-50-fitted",
        "swsearch BLOSUM50 10/2, fitted",
        "swsearch",
        "--matrix BLOSUM50 --gap-open 10 --gap-extend 2 --statistics fitted",
    ),
    *(
        Contender(key, f"swsearch {name}", "swsearch", f"--statistics published {options}")
        for key, name, options in (
            ("ours-50", "BLOSUM50 13/2", "--matrix BLOSUM50 --gap-open 13 --gap-extend 2"),
            ("ours-50-12", "BLOSUM50 12/2", "--matrix BLOSUM50 --gap-open 12 --gap-extend 2"),
            ("ours-45", "BLOSUM45 14/2", "--matrix BLOSUM45 --gap-open 14 --gap-extend 2"),
            ("ours-80", "BLOSUM80 10/1", "--matrix BLOSUM80 --gap-open 10 --gap-extend 1"),
            ("ours-250", "PAM250 14/2", "--matrix PAM250 --gap-open 14 --gap-extend 2"),
        )
    ),
    Contender("ours-semi", "swsearch semiglobal BLOSUM62 11/1", "swsearch", "--mode semiglobal"),
    Contender("ours-global", "swsearch global BLOSUM62 11/1", "swsearch", "--mode global"),
]
"""Programs and settings; gap costs as swsearch counts them. The first has the default statistics, fitted."""

AGAINST = ("swsearch", "swsearch --preset context", "BLOSUM62 11/1")
"""Rows that the others are compared with; the last is of --gaps."""

SYSTEMS = {
    "BLOSUM62": [(11, 1), (10, 1)],
    "BLOSUM50": [(13, 2), (12, 2), (10, 2)],
    "VTML200": [(14, 1), (12, 2), (10, 2)],
    "PFASUM60": [(16, 1), (15, 1), (14, 1), (12, 1), (13, 2), (12, 2), (11, 2), (10, 2)],
}
"""Matrices of --gaps, all but BLOSUM62 in third bits, and the gap costs of each."""

GAPS = [
    *(
        Contender(
            f"{matrix}-{gap_open}-{gap_extend}", f"{matrix} {gap_open}/{gap_extend}", "swsearch",
            f"--matrix {matrix} --gap-open {gap_open} --gap-extend {gap_extend} --statistics fitted",
        )
        for matrix, costs in SYSTEMS.items()
        for gap_open, gap_extend in costs
    ),
    Contender("ssearch36", "ssearch36 BLOSUM50 10/2", "ssearch36"),
]  # fmt: skip

WRONGS = (1, 5)
"""Up to which wrong hit sensitivity is measured."""

ERRORS = (0.01, 0.1, 1.0)
"""Wrong hits per query at which coverage is read off the curve."""

SEED = 7
"""Of the order of the subjects."""

CONTEXTS = "Contexts were trained on queries whose sequences and last profiles find nothing similar in this half."

POINTS = 100
"""Points of a curve that are written for the plot."""


def chosen(n_domains: int, wanted: int) -> npt.NDArray[np.int64]:
    """Return the places of the queries, evenly spaced; 0 takes each domain."""
    if not 0 < wanted < n_domains:
        return np.arange(n_domains)
    return np.arange(wanted) * n_domains // wanted


def prepare(
    folder: Path, domains: Records, queries: npt.NDArray[np.int64], evalue: float, threads: int
) -> tuple[Comparison, int]:
    """Write the queries and the shuffled subjects; return where, and the queries' residues."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = [(f"q{place}", domains[place][1]) for place in queries]
    subjects = [(f"s{place}", letters) for place, (_, letters) in enumerate(domains)]
    random.Random(SEED).shuffle(subjects)
    files = write(folder / "queries.fasta", asked), write(folder / "subjects.fasta", subjects)
    return Comparison(folder, *files, evalue, threads), residues(asked)


SHARES = [
    *(f"up to wrong hit {k}" for k in WRONGS),
    *(f"Foldseek's measure: {level}" for level in ("family", "superfamily", "fold")),
]  # fmt: skip
"""Names of `shares_of`."""

COMPARED = [*(f"hit {k}" for k in WRONGS), "Foldseek's family", "Foldseek's superfamily"]
"""Shares that have differences; all programs find fewer than one in a hundred folds."""

SHARED_HEADS = [
    f"queries with < {max(WRONGS)} wrong hits", *(f"found at {errors:g} wrong hits per query" for errors in ERRORS),
    "wrong hits per query, E <= 1", "E <= 0.001",
]  # fmt: skip
"""Columns that `iterated.py` prints too."""


def shared_cells(hits: pd.DataFrame, curve: Curve, queries: npt.NDArray[np.int64], labels: Labels) -> list[str]:
    """Format the columns of `SHARED_HEADS`."""
    wrong = hits.groupby("query")["wrong"].sum().reindex(queries, fill_value=0)
    return [
        f"{(wrong < max(WRONGS)).mean():.1%}",
        *(f"{curve.coverage_at(errors):.2%}" if errors <= curve.complete() else "" for errors in ERRORS),
        f"{curve.errors_at(1.0):.2f}", f"{curve.errors_at(0.001):.4f}",
    ]  # fmt: skip


def shares_of(hits: pd.DataFrame, queries: npt.NDArray[np.int64], labels: Labels) -> list[npt.NDArray[np.float64]]:
    """Return the shares that queries with relatives find: one array for each of `SHARES`."""
    return [
        *(sensitivity(hits, queries, labels, k) for k in WRONGS),
        *foldseek_sensitivity(hits, queries, labels).T,
    ]


def differences(
    found: Sequence[npt.NDArray[np.float64]],
    other: Sequence[npt.NDArray[np.float64]],
    queries: npt.NDArray[np.int64],
    labels: Labels,
) -> list[str]:
    """Format the differences of `COMPARED` between two lists of `shares_of`."""
    every = queries[labels.relatives()[queries] > 0]
    counted = queries[(labels.relatives_by_level()[queries] > 0).all(axis=1)]
    asked = [every] * len(WRONGS) + [counted] * 2
    return [
        difference(values, others, labels.superfamily[places])
        for values, others, places in zip(found, other, asked, strict=False)
    ]


def measure_lines(queries: npt.NDArray[np.int64], labels: Labels) -> list[str]:
    """Describe the columns, and the queries of Foldseek's measure."""
    counted = (labels.relatives_by_level()[queries] > 0).all(axis=1).sum()
    return [
        "Share of a query's superfamily found before its first and fifth wrong hit, mean over queries (percentage",
        "points ± standard error of the difference over these queries, in brackets over superfamilies); and up to",
        "the E-value at which there are so many wrong hits per query, queries weighted equally (empty where lists",
        "have fewer).",
        "Foldseek's measure: share of the family, of the superfamily without the family, and of the fold without",
        f"the superfamily, before the first wrong hit, mean over the {counted:,} queries with all three kinds.",
    ]


def measure(
    runs: Sequence[Run], queries: npt.NDArray[np.int64], labels: Labels
) -> tuple[list[list[str]], dict[str, Curve]]:
    """Return a row of the table for each contender, and the curves by name."""
    rows, curves, found = [], {}, {}
    cells = {}
    for run in runs:
        name, hits = run.contender.name, judged(run.table(), labels)
        curves[name], found[name] = curve_of(hits, queries, labels), shares_of(hits, queries, labels)
        cells[name] = shared_cells(hits, curves[name], queries, labels)
    for run in runs:
        name = run.contender.name
        rows.append([
            name, run.contender.kind, *(f"{share.mean():.2%}" for share in found[name]),
            *(cell for other in AGAINST if other in found
              for cell in differences(found[name], found[other], queries, labels)),
            *cells[name], f"{run.seconds:.1f}", f"{run.busy:.1f}",
        ])  # fmt: skip
    return rows, curves


def thinned_points(curves: dict[str, Curve], least: float) -> dict[str, list[list[float]]]:
    """Return what is written of the curves: some points of each, with six digits."""
    small = {name: thinned(curve, POINTS, least) for name, curve in curves.items()}
    return {
        name: [[float(f"{x:.6g}"), float(f"{y:.6g}")] for x, y in zip(one.errors, one.coverage, strict=True)]
        for name, one in small.items()
    }


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__, files=False)
    parser.add_argument("--subjects", type=Path, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--queries", type=int, default=2000, help="so many, at most and by default %(default)s")
    parser.add_argument(
        "--evalue", type=float, default=100.0, help="threshold of every contender, default %(default)g"
    )
    parser.add_argument("--threads", type=int, default=2, help="of every contender, default %(default)s")
    parser.add_argument("--work", type=Path, help="folder that keeps raw tables")
    parser.add_argument("--gaps", action="store_true", help="contenders are matrices with gap costs, see above")
    parser.add_argument("--half", choices=HALVES, default="confirmation", help="default %(default)s")
    parser.add_argument("--flank", type=int, default=0, help="random residues on either side of every domain")
    keys = [one.key for one in (*CONTENDERS, *GAPS)]
    parser.add_argument("--only", action="append", choices=keys, metavar="KEY", help="default: all")
    parser.add_argument("--note", default="", help="a sentence for the report, such as what else ran")
    parser.add_argument("--draw", type=Path, metavar="FILE.json", help="measure nothing: draw these curves again")
    options = parser.parse_args()
    if options.draw is None and (options.subjects is None or options.work is None):
        parser.error("expected --subjects FASTA and --work FOLDER, or --draw FILE.json")
    return options


def heads(names: Sequence[str]) -> list[str]:
    """Return the heads of the columns."""
    return [
        "", "what", *SHARES, *(f"{share}, against {name}" for name in AGAINST if name in names for share in COMPARED),
        *SHARED_HEADS, "wall s", "processor s",
    ]  # fmt: skip


def main() -> None:
    options = read_options()
    if options.draw is not None:
        plots.draw("benchmarks.statistics.sensitivity_plot", options.draw)
        return
    domains, labels = read_scope(options.subjects)
    domains = flanked(domains, options.flank) if options.flank else domains
    queries = drawn_queries(labels, options.half, options.queries)
    folder = options.work / f"{options.half}-{len(queries)}"
    comparison, asked = prepare(folder, domains, queries, options.evalue, options.threads)
    contenders = [
        one for one in (GAPS if options.gaps else CONTENDERS) if not options.only or one.key in options.only
    ]
    runs, skipped = run_all(comparison, contenders)
    if not runs:
        sys.exit("nothing could be run; benchmarks/README.md names the packages")
    rows, curves = measure(runs, queries, labels)
    lines = [
        *heading(__file__, ["pandas", *versions_needed(contenders)]),
        f"{options.subjects.name}: {len(domains):,} domains, {residues(domains):,} residues, "
        f"{labels.fold.max() + 1:,} folds, {labels.superfamily.max() + 1:,} superfamilies",
        f"{len(queries):,} queries of {len(np.unique(labels.superfamily[queries])):,} superfamilies of the half "
        f"{options.half}, {asked:,} residues, {labels.relatives()[queries].sum():,} pairs of relatives; "
        f"{asked * residues(domains) / 1e9:,.0f} Gcells; E <= {options.evalue:g}; flanks of {options.flank} residues",
        *([CONTEXTS] if options.half == "confirmation" else []),
        f"{times_line(runs, options.threads)} {options.note}".strip(), *skipped, "",
        *measure_lines(queries, labels),
        "",
        *table(heads(list(curves)), rows),
    ]  # fmt: skip
    finish(lines, options.out)
    if options.out:
        about = {
            "queries": len(queries), "domains": len(domains), "date": max(run.date for run in runs),
            "least": 1 / len(queries), "subjects": options.subjects.name,
        }  # fmt: skip
        stored = options.out.with_suffix(".json")
        results = {"about": about, "curves": thinned_points(curves, about["least"])}
        stored.write_text(json.dumps(results) + "\n", encoding="utf-8")
        plots.draw("benchmarks.statistics.sensitivity_plot", stored)


if __name__ == "__main__":
    main()
