"""Speed of the CPU engine, beside the peers that package managers install, or (--what) beside itself.

  peers         the tables below
  profiles      one query as a sequence, as a profile of the same rows, and with gap costs by position, each mode
  frame_shifts  rows scored as a protein, and as the codons of a strand whose frame may shift
The last two scan --database in memory on one thread, scores only, with each instruction set. Each turn gives a ratio
of processor seconds; the table has the median ratio. Results are compared.

Tables of peers have contenders in turn (A B C, A B C, ...). They show medians and, in brackets, the extremes:
  whole commands    `swsearch search` and the peers' programs, with databases built before: start, reading, search,
                    statistics, alignments of each query's ten best (mmseqs2: of all hits), output. With 2 threads
                    also the bare loops of parasail and pyopal, which find scores only. Their process runs already and
                    has encoded the subjects;
  scans             one query against every subject in memory, scores only: the CPU engine with each instruction set
                    of this machine, parasail and pyopal. All scores of a turn are compared. Queries under 1,000
                    residues have two more turns;
  cells a cycle     the scans on one thread, by processor time, beside the bound of the inner loop's instructions on
                    this processor (cpu_bound.py has the model);
  a large database  (--large) one query: the scan in memory, and the whole command.
Processor seconds count all threads and processes. SWIPE is left out: no package registry has it.

Needs: a quiet machine; for peers ncbi-blast+, diamond-aligner, fasta3, mmseqs2, gcc and binutils, parasail, pyopal,
       scoring-matrices. Ten minutes on two cores, the others some.
Run:   python -m benchmarks.speed.cpu --queries queries20.fasta [--subjects DB.fasta.gz] [--large SPROT.h5]
           [--out benchmarks/results/cpu.txt]
       python -m benchmarks.speed.cpu --what profiles --database DB.h5 [--turns 11] [--out FILE]
Exit code 1 if a score, or a byte of swsearch's output, differs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed import cpu_bound, cpu_scans
from benchmarks.speed.command_peers import PROTEINS, SEARCH, TOP, Programs
from benchmarks.speed.cpu_scans import MORE_RUNS, Turns, engine_for, padding, read_chunks, swsearch_scan, time_scans
from benchmarks.support.common import (
    Records,
    arguments,
    data_line,
    finish,
    heading,
    need,
    numbered,
    read,
    residues,
    table,
    write,
)
from benchmarks.support.timing import EXACT, HEURISTIC, SCORES, Timing, in_turns, ratio
from swsearch import Database, extension
from swsearch.engines.base import Engine, LoadedChunk, QueryGroup, ScoreArray
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import PositionGapCosts, QueryProfile, Scoring

THREADS = (1, 2)
PEERS = ["parasail", "pyopal", "diamond", "ssearch36", "blastp", "mmseqs"]
LENGTHS = (144, 222, 375, 464, 1000, 3005, 5478)
"""Query lengths whose scans are timed beside the peers'; the nearest query stands for each."""
LARGE = 375
"""Query length for the large database."""
SHIFTED, COST = (998, 9998), 15
"""Rows of the queries of ``frame_shifts``, and what a shift costs."""


def rate(cells: float, seconds: float) -> str:
    """Format GCUPS."""
    return f"{cells / seconds / 1e9:.1f}"


def seconds_of(timing: Timing) -> str:
    """Format a median and its extremes."""
    return f"{timing.median:.2f}" + (f" ({timing.spread()})" if len(timing.wall) > 1 else "")


def nearest(queries: Records, length: int) -> str:
    """Return the letters of the query whose length is nearest."""
    return min((letters for _, letters in queries), key=lambda letters: abs(len(letters) - length))


def of_runs(runs: int) -> str:
    """Say what the numbers are."""
    return f"medians of {runs} turns" if runs > 1 else "one turn"


def of_threads(threads: int) -> str:
    """Format a number of threads."""
    return f"{threads} thread{'s' if threads > 1 else ''}"


def time_commands(
    kinds: Mapping[str, str], works: Mapping[str, Callable[[], Any]], threads: int, runs: int, cells: int
) -> list[str]:
    """Time every program; return its table."""
    timings = in_turns(works, runs, f"{of_threads(threads)}, ")
    ours = next(iter(timings.values())).wall
    times = {name: ratio(timing.wall, ours) for name, timing in timings.items()}
    rows = [
        [name, kinds[name], seconds_of(timing), rate(cells, timing.median), f"{times[name]:.2f}",
         f"{statistics.median(timing.busy):.1f}"]
        for name, timing in timings.items()
    ]  # fmt: skip
    exact_peers = [name for name in times if kinds[name] != HEURISTIC and not name.startswith("swsearch")]
    exact = min(exact_peers, key=lambda name: times[name])
    return [
        f"Whole commands, {of_threads(threads)}, {TOP} best hits per query with alignments, {of_runs(runs)}:", "",
        *table(["", "what", "seconds", "GCUPS", "time / ours", "processor s"], rows), "",
        f"The fastest exact peer ({exact}) takes {times[exact]:.2f} times as long as swsearch, blastp "
        f"{times['blastp']:.2f} times (medians of the turns' ratios).", "",
    ]  # fmt: skip


def commands(
    queries: Records, subjects: Records, runs: Mapping[int, int]
) -> tuple[list[str], set[str], list[LoadedChunk]]:
    """Time all whole commands; return their tables, swsearch's different outputs, and its database."""
    need("makeblastdb", "blastp", "diamond", "ssearch36", "mmseqs")
    lines: list[str] = []
    outputs: set[str] = set()

    def kept(work: Callable[[], str]) -> None:
        outputs.add(work())

    with tempfile.TemporaryDirectory(prefix="swsearch-cpu-") as made:
        folder = Path(made)
        asked = write(folder / "q.fasta", queries)
        for threads in THREADS[::-1]:
            every = dict(PROTEINS)
            if threads > 1:  # on one thread, the scans say as much
                every["swsearch, FASTA"] = EXACT, SEARCH.replace("{work}/db.h5", "{subjects}")
            kinds = {name: kind for name, (kind, _) in every.items()}
            programs = Programs({name: line for name, (_, line) in every.items()}, folder, subjects, threads=threads)
            works: dict[str, Callable[[], Any]] = dict(programs.works(queries=asked))
            works |= {name: partial(kept, work) for name, work in works.items() if name.startswith("swsearch")}
            for library, scan in cpu_scans.library_scans(subjects, threads).items() if threads > 1 else ():
                kinds[f"{library}, bare loop"] = SCORES
                works[f"{library}, bare loop"] = partial(_scan_all, scan, queries)
            cells = residues(queries) * residues(subjects)
            lines += time_commands(kinds, works, threads, runs[threads], cells)
        with Database.open(folder / "db.h5") as database:
            return lines, outputs, read_chunks(database)


def _scan_all(scan: cpu_scans.Scan, queries: Records) -> None:
    for _, letters in queries:
        scan.run(letters)


def scan_table(turns: Turns, threads: int, lengths: Sequence[int], n_residues: int) -> list[str]:
    """Return GCUPS by query length."""
    rows = []
    for name in dict.fromkeys(name for name, _, _ in turns):
        timings = {length: turns.get((name, length, threads)) for length in lengths}
        apart = max((max(each.wall) - min(each.wall)) / each.median for each in timings.values() if each)
        cells = [rate(n * n_residues, timing.median) if timing else "" for n, timing in timings.items()]
        rows.append([name, *cells, f"{apart:.0%}"])
    return table([of_threads(threads), *map(str, lengths), "largest spread"], rows)


def large_database(path: Path, query: str, runs: int) -> list[str]:
    """Time one query against a large database; return the table."""
    with Database.open(path) as database:
        chunks, n_subjects, n_residues = read_chunks(database), database.n_subjects, database.n_residues
    works: dict[str, Callable[[], Any]] = {}
    with tempfile.TemporaryDirectory(prefix="swsearch-cpu-") as folder:
        asked = write(Path(folder) / "q.fasta", [("q", query)])
        for threads in THREADS:
            line = SEARCH.replace("{work}/db.h5", "{large}")
            programs = Programs({}, Path(folder), [], threads=threads, large=path.resolve(), queries=asked)
            works[f"scan {threads}"] = partial(
                swsearch_scan(chunks, extension.active_instruction_set(), threads).run, query
            )
            works[f"command {threads}"] = partial(programs.run, line)
        timings = in_turns(works, runs, f"{path.name}, ")
    rows = []
    for threads in THREADS:
        both = [timings[f"{kind} {threads}"] for kind in ("scan", "command")]
        shown = [text for one in both for text in (seconds_of(one), rate(len(query) * n_residues, one.median))]
        rows.append([of_threads(threads), *shown])
    return [
        f"{path.name}: {n_subjects:,} subjects, {n_residues:,} residues; query of {len(query)}, "
        f"{extension.active_instruction_set()}, padding {padding(chunks):.3f}, {of_runs(runs)}:", "",
        *table(["", "scan in memory, seconds", "GCUPS", "whole command, seconds", "GCUPS"], rows), "",
    ]  # fmt: skip


def peers(options: argparse.Namespace) -> tuple[list[str], bool]:
    """Measure all tables of peers; return them, and whether all that is compared is equal."""
    queries, subjects = numbered(read(options.queries, options.first), "q"), numbered(read(options.subjects), "s")
    runs = options.turns or 3
    lines = [data_line(queries, subjects, options), f"CPU engine: {extension.active_instruction_set()}", ""]
    text, outputs, chunks = commands(queries, subjects, {1: options.turns_one_thread, 2: runs})
    lines += text
    n_residues = residues(subjects)
    chosen = list(dict.fromkeys(nearest(queries, length) for length in LENGTHS))
    turns, differing = time_scans(chosen, subjects, chunks, THREADS, runs)
    lines += [f"Scans, GCUPS by query length, {of_runs(runs)} (short queries: {runs + MORE_RUNS}):", ""]
    for threads in THREADS:
        lines += [*scan_table(turns, threads, [len(query) for query in chosen], n_residues), ""]
    reached = {
        instructions: [
            length * n_residues / statistics.median(timing.busy) / 1e9
            for (name, length, threads), timing in turns.items()
            if name == f"swsearch {instructions}" and threads == 1
        ]
        for instructions in extension.instruction_sets()
    }
    lines += cpu_bound.report(reached, padding(chunks))
    if options.large:
        lines += large_database(options.large, nearest(queries, LARGE), runs)
    if len(outputs) > 1:
        differing.append("swsearch's output")
    compared = (
        f"Compared with each other: all scores of every turn, swsearch's output in {len(THREADS)} numbers of threads"
    )
    lines += [f"{compared}: {'equal.' if not differing else 'DIFFERENT: ' + '; '.join(differing)}"]
    return lines, not differing


class Comparison(NamedTuple):
    """A row of a table: calls that take turns, the cells of each, and whether their results are as they should be."""

    labels: tuple[str, object]
    cells: int
    works: Mapping[str, Callable[[], Any]]
    agree: Callable[[list[Any]], bool]


def compared(comparisons: Iterator[Comparison], turns: int, digits: tuple[int, int]) -> tuple[list[Any], list[str]]:
    """Take turns; return rows of GCUPS by processor time and of ratios to the first, and what does not agree."""
    rows, wrong = [], []
    for labels, cells, works, agree in comparisons:
        found: dict[str, Any] = {}
        keeping = {name: partial(_keep, found, name, work) for name, work in works.items()}
        what = f"{labels[0]}, {labels[1]}"
        busy = [timing.busy for timing in in_turns(keeping, turns, f"{what}, ").values()]
        rates = [f"{cells / statistics.median(each) / 1e9:.{digits[0]}f}" for each in busy]
        others = [f"{ratio(each, busy[0]):.{digits[1]}f}" for each in busy[1:]]
        rows.append([*labels, rates[0], *(cell for pair in zip(rates[1:], others, strict=True) for cell in pair)])
        if not agree(list(found.values())):
            wrong.append(what)
    return rows, wrong


def _keep(found: dict[str, Any], name: str, work: Callable[[], Any]) -> None:
    found[name] = work()


def scores_of(engine: Engine, group: QueryGroup, chunks: Sequence[LoadedChunk]) -> list[ScoreArray]:
    """Score a group with all chunks."""
    return [engine.score(group, each) for each in chunks]


def are_same(found: list[list[ScoreArray]]) -> bool:
    """Say whether all contenders found the same scores."""
    return all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def profile_comparisons(database: Database, length: int) -> Iterator[Comparison]:
    """Yield a sequence beside profiles that score as it does."""
    chunks, scoring = read_chunks(database), Scoring()
    codes = np.random.default_rng(1).integers(0, 20, length).astype(np.uint8)
    rows = scoring.rows(codes)
    gaps = PositionGapCosts.uniform(length, scoring.gap_open, scoring.gap_extend)
    queries = {
        "sequence": rows,
        "profile": QueryProfile(rows.scores, codes, is_specific=True),
        "costs": QueryProfile(rows.scores, codes, is_specific=True, gaps=gaps),
    }
    for instructions in extension.instruction_sets():
        engine = engine_for(instructions, 1)
        for mode in MODES:
            groups = {name: engine.prepare([each], Recurrence(scoring, mode)) for name, each in queries.items()}
            works = {name: partial(scores_of, engine, group, chunks) for name, group in groups.items()}
            yield Comparison((instructions, mode), length * database.n_residues, works, are_same)


def shift_comparisons(database: Database) -> Iterator[Comparison]:
    """Yield rows without shifts beside the same with shifts, whose scores the best of three frames may not exceed."""
    chunks, generator, scoring = read_chunks(database), np.random.default_rng(1), Scoring()
    letters = np.concatenate([database.codes(place) for place in range(min(1000, database.n_subjects))])
    for instructions in extension.instruction_sets():
        engine = engine_for(instructions, 1)
        for length in SHIFTED:
            codes = generator.permutation(letters)[:length].astype(np.uint8)
            frames = engine.prepare([scoring.rows(codes[k::3].copy()) for k in range(3)], Recurrence(scoring))
            best = [each.max(axis=0) for each in scores_of(engine, frames, chunks)]
            works = {
                f"{cost}": partial(
                    scores_of, engine,
                    engine.prepare([scoring.rows(codes)], Recurrence(scoring, frame_shift=cost)), chunks,
                )
                for cost in (None, COST)
            }  # fmt: skip

            def agree(found: list[list[ScoreArray]], best: list[ScoreArray] = best) -> bool:
                return all((a[0] >= b).all() for a, b in zip(found[1], best, strict=True))

            yield Comparison((instructions, length), length * database.n_residues, works, agree)


def itself(options: argparse.Namespace) -> tuple[list[str], bool]:
    """Measure profiles or frame shifts; return the table, and whether results are as they should be."""
    with Database.open(options.database) as database:
        about = f"{options.database.name}: {database.n_subjects:,} subjects, {database.n_residues:,} residues; "
        if options.what == "profiles":
            turns = options.turns or 11
            rows, wrong = compared(profile_comparisons(database, options.length), turns, (1, 3))
            about += f"query of {options.length}, one thread, medians of {turns} turns;"
            verdict = f"scores are {'NOT the same' if wrong else 'the same'}."
            heads = ["", "mode", "sequence, GCUPS", "profile, GCUPS", "time / sequence's", "with gap costs, GCUPS"]
            heads.append("time / sequence's")
        else:
            turns = options.turns or 9
            rows, wrong = compared(shift_comparisons(database), turns, (1, 2))
            about += f"one thread, medians of {turns} turns;"
            verdict = f"scores with shifts are {'SOMETIMES' if wrong else 'never'} below those of the best frame."
            heads = ["", "rows", "protein, GCUPS", f"shifts for {COST}, GCUPS", "time / protein's"]
    return [about, verdict, "", *table(heads, rows)], not wrong


def main() -> None:
    parser = arguments(__doc__)
    add = parser.add_argument
    add("--what", choices=("peers", "profiles", "frame_shifts"), default="peers", help="default %(default)s")
    add("--large", type=Path, metavar="DB.h5", help="peers: database for one query; none by default")
    add("--turns", type=int, help="of each contender, default 3, of the others 9 or 11")
    add(
        "--turns-one-thread",
        type=int,
        default=1,
        help="the same of whole commands on one thread, default %(default)s",
    )
    add("--database", type=Path, help="profiles, frame_shifts: HDF5 file of subjects")
    add("--length", type=int, default=250, help="profiles: residues of the query, default %(default)s")
    options = parser.parse_args()
    if options.what in ("profiles", "frame_shifts") and options.database is None:
        parser.error(f"--what {options.what}: needs --database DB.h5")
    is_peers = options.what == "peers"
    lines, is_right = peers(options) if is_peers else itself(options)
    script = __file__ if is_peers else f"{__file__} {options.what}"
    finish([*heading(script, PEERS if is_peers else ["numpy"]), *lines], options.out)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
