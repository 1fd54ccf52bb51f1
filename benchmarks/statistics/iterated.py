"""How many relatives does an iterated search find before its errors? SCOPe within SCOPe, beside the peers.

Superfamilies are split by lot. Constants of the construction of profiles may be chosen on queries of one half (--half
choice), and are confirmed on queries of the other (--half confirmation, the default). Each query is searched, with
its iterations, among all domains of SCOPe 2.07. `sensitivity_measures.py` says what counts as right and wrong. Every
iteration's hits are ranked by the E-values that the program gives in that iteration; one that stops early has found
nothing else since.

`CONTENDERS` is the table of programs. The others have the thresholds of inclusion that they have by default (psiblast
0.002, jackhmmer 0.001, mmseqs2 0.1, hhsearch 0.001), swsearch those that it has by default without contexts, 0.002,
and with them, 0.02. All programs list hits up to an E-value far beyond their thresholds (--evalue),
but the filters of jackhmmer drop most subjects with E > 0.1, so that most of its lists end before their fifth wrong
hit. With loose filters (`LOOSE`) its lists are as long as the others'. Mmseqs2 is run anew for each iteration, the
others tell of all in one run. Hhsearch takes 2.5 s for each query and iteration: it has fewer queries (`FEWER`), and
its differences are those of these.

Differences are those of the same queries, against the last iterations of psiblast and of jackhmmer with loose
filters. The first error counts queries, the second (in brackets) superfamilies, whose members gain and lose together.

Needs: ncbi-blast+, hmmer, mmseqs2, hhsuite (what is not installed is skipped), pandas. Raw tables stay in --work, and
only what is missing or asked otherwise is measured again. Two cores take minutes for each program, 20 for loose
filters.
Run:   python -m benchmarks.statistics.iterated --subjects scop40.fasta.xz --work FOLDER [--queries 2000]
           [--half choice] [--only psiblast] [--hits NAME=FILE] [--out benchmarks/results/iterated.txt]
--hits adds hits that something else has found: lines of iteration, query, subject and E-value, tab-separated, for the
queries of FOLDER/HALF-N/queries.fasta among the subjects beside it.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.statistics.sensitivity import (
    COMPARED,
    CONTEXTS,
    LOOSE,
    SHARED_HEADS,
    SHARES,
    differences,
    measure_lines,
    prepare,
    shared_cells,
    shares_of,
)
from benchmarks.statistics.sensitivity_measures import HALVES, Labels, curve_of, drawn_queries, judged, read_scope
from benchmarks.support.common import Records, arguments, finish, heading, read, residues, table
from benchmarks.support.contenders import Comparison, Contender, Run, run_all, times_line, versions_needed
from benchmarks.support.iterations import read_hits, tables

N_ITERATIONS = 3

CONTENDERS: dict[str, list[Contender]] = {
    "psiblast": [
        Contender("psiblast", "psiblast", "psiblast", f"-num_iterations {N_ITERATIONS} -inclusion_ethresh 0.002")
    ],
    "jackhmmer": [Contender("jackhmmer", "jackhmmer", "jackhmmer", f"-N {N_ITERATIONS}")],
    "jackhmmer, loose filters": [
        Contender("jackhmmer-loose", "jackhmmer, loose filters", "jackhmmer", f"-N {N_ITERATIONS} {LOOSE}")
    ],
    "mmseqs2": [
        Contender(f"mmseqs-{n}", "mmseqs2 -s 7.5", "mmseqs", f"-s 7.5 --num-iterations {n}")
        for n in range(1, N_ITERATIONS + 1)
    ],
    "hhsearch": [Contender("hhsearch", "hhsearch", "hhsearch", f"--iterations {N_ITERATIONS}")],
    **{
        name: [Contender(key, name, "swsearch-iterated", f"--iterations {N_ITERATIONS} {options}")]
        for key, name, options in (
            ("swsearch-002", "swsearch, inclusion 0.002", "--inclusion-evalue 0.002"),
            ("swsearch-sensitive", "swsearch sensitive, 0.005", "--inclusion-evalue 0.005 --preset sensitive"),
            ("swsearch-context", "swsearch context, 0.02", "--inclusion-evalue 0.02 --preset context"),
        )
    },
}
"""Commands of each program: all iterations in one run, or one more in each run."""

FEWER = {"hhsearch": 100}
"""Queries of slow programs."""

AGAINST = ("psiblast", "jackhmmer, loose filters")
"""Whose last iteration the others are compared with."""

MANY, PAIRS_SHOWN = 5, 8
"""Wrong hits of E <= 1 from which a query has many; pairs of folds that are named."""


@dataclass(frozen=True)
class Found:
    """Hits of a program, by iteration.

    Parameters
    ----------
    name : str
        Name in the table.
    hits : DataFrame
        See `benchmarks.support.iterations`.
    queries : ndarray of int64
        Places of the queries.
    seconds, busy : list of float
        Times of each run; empty if unknown.
    """

    name: str
    hits: pd.DataFrame
    queries: npt.NDArray[np.int64]
    seconds: list[float]
    busy: list[float]

    @property
    def n_iterations(self) -> int:
        """Iterations that it has hits of."""
        return int(self.hits["iteration"].max())

    def judged(self, iteration: int, labels: Labels) -> pd.DataFrame:
        """Return the hits of an iteration, see `judged`."""
        return judged(self.hits[self.hits["iteration"] == iteration], labels)

    def time(self, iteration: int) -> list[str]:
        """Format what the run with so many iterations took; nothing where none ended there."""
        place = iteration - 1 if len(self.seconds) == self.n_iterations else iteration - self.n_iterations
        if not self.seconds or place < 0:
            return ["", ""]
        return [f"{self.seconds[place]:.1f}", f"{self.busy[place]:.1f}"]


def measured(every: Sequence[Found], labels: Labels) -> list[list[str]]:
    """Return a row of the table for each program and iteration."""
    last = {one.name: one.judged(one.n_iterations, labels) for one in every if one.name in AGAINST}
    rows = []
    for one in every:
        others = [shares_of(last[name], one.queries, labels) for name in AGAINST if name in last]
        for iteration in range(1, one.n_iterations + 1):
            hits = one.judged(iteration, labels)
            found = shares_of(hits, one.queries, labels)
            rows.append([
                one.name, str(iteration), *(f"{share.mean():.2%}" for share in found),
                *(cell for other in others for cell in differences(found, other, one.queries, labels)),
                *shared_cells(hits, curve_of(hits, one.queries, labels), one.queries, labels), *one.time(iteration),
            ])  # fmt: skip
    return rows


def wrong_by_fold(every: Sequence[Found], labels: Labels, folds: Sequence[str]) -> list[str]:
    """Say for each program whose the wrong hits of E <= 1 in its last iteration are, in lines."""
    lines = []
    for one in every:
        hits = one.judged(one.n_iterations, labels)
        wrong = hits[hits["wrong"] & (hits["evalue"] <= 1.0)]
        of_query = wrong.groupby("query").size()
        many = of_query[of_query > MANY]
        pairs = Counter(
            " and ".join(sorted((folds[query], folds[subject])))
            for query, subject in zip(wrong["query"], wrong["subject"], strict=True)
        )
        common = ", ".join(f"{pair} {n}" for pair, n in pairs.most_common(PAIRS_SHOWN))
        lines.append(
            f"{one.name}: {len(wrong):,}, {many.sum() / max(len(wrong), 1):.0%} of them of {len(many)} queries with "
            f"more than {MANY}; {common}"
        )
    return lines


def heads(every: Sequence[Found]) -> list[str]:
    """Return the heads of the columns."""
    peers = [name for name in AGAINST if any(one.name == name for one in every)]
    return [
        "", "iteration", *SHARES, *(f"{share}, against the last of {name}" for name in peers for share in COMPARED),
        *SHARED_HEADS, "wall s", "processor s",
    ]  # fmt: skip


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__, files=False)
    parser.add_argument("--subjects", type=Path, required=True, help="SCOPe's FASTA, plain or .xz")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps raw tables")
    parser.add_argument("--queries", type=int, default=2000, help="so many, at most and by default %(default)s")
    parser.add_argument("--half", choices=HALVES, default="confirmation", help="default %(default)s")
    parser.add_argument("--evalue", type=float, default=100.0, help="threshold of every program, default %(default)g")
    parser.add_argument("--threads", type=int, default=2, help="of every program, default %(default)s")
    parser.add_argument("--only", action="append", choices=list(CONTENDERS), help="default: all")
    parser.add_argument("--hits", action="append", default=[], metavar="NAME=FILE", help="other hits, see above")
    parser.add_argument("--note", default="", help="a sentence for the report, such as what else ran")
    return parser.parse_args()


def compared(
    options: argparse.Namespace, domains: Records, labels: Labels, wanted: int
) -> tuple[Comparison, npt.NDArray[np.int64]]:
    """Prepare the comparison of so many queries; return it with their places."""
    queries = drawn_queries(labels, options.half, min(wanted, options.queries))
    folder = options.work / f"{options.half}-{len(queries)}"
    return prepare(folder, domains, queries, options.evalue, options.threads)[0], queries


def main() -> None:
    options = read_options()
    domains, labels = read_scope(options.subjects)
    comparison, queries = compared(options, domains, labels, options.queries)
    every: list[Found] = []
    every_run: list[Run] = []
    all_skipped: list[str] = []
    for name in options.only or list(CONTENDERS):
        own, asked = compared(options, domains, labels, FEWER.get(name, options.queries))
        runs, skipped = run_all(own, CONTENDERS[name])
        all_skipped += skipped[:1]
        every_run += runs
        if runs:
            shown = name if len(asked) == len(queries) else f"{name}, {len(asked):,} queries"
            times = [run.seconds for run in runs], [run.busy for run in runs]
            every.append(Found(shown, tables(runs), asked, *times))
    for name, _, path in (given.partition("=") for given in options.hits):
        every.append(Found(name, read_hits(Path(path)), queries, [], []))
    if not every:
        sys.exit("nothing could be run; benchmarks/README.md names the packages")
    lines = [
        *heading(__file__, ["pandas", *versions_needed([run.contender for run in every_run])]),
        f"{options.subjects.name}: {len(domains):,} domains, {residues(domains):,} residues; half: {options.half}, "
        f"{len(queries):,} queries of {len(np.unique(labels.superfamily[queries])):,} superfamilies, "
        f"{residues(read(comparison.queries)):,} residues, {labels.relatives()[queries].sum():,} pairs of relatives; "
        f"E <= {options.evalue:g}",
        *([CONTEXTS] if options.half == "confirmation" else []),
        f"{times_line(every_run, options.threads) if every_run else ''} {options.note}".strip(), *all_skipped, "",
        *measure_lines(queries, labels),
        "",
        *table(heads(every), measured(every, labels)),
        "",
        "Wrong hits of E <= 1 in the last iteration, and the folds that most of them are of:",
        "",
        *wrong_by_fold(every, labels, folds_of(options.subjects)),
    ]  # fmt: skip
    finish(lines, options.out)


def folds_of(path: Path) -> list[str]:
    """Return the name of each domain's fold, such as ``c.2``."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as stream:
        return [".".join(line.split()[1].split(".")[:2]) for line in stream if line.startswith(">")]


if __name__ == "__main__":
    main()
