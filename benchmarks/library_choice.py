"""Which SIMD library should the CPU engine use: parasail, pyopal, and the engine as it stands, in GCUPS.

Measures, query by query and one after the other (so that a drifting machine is fair to all), the scan of all
subjects by
  parasail  the striped kernels called by the package's own functions in a Python loop,
  pyopal    score mode, overflow "simple",
  swsearch  CpuEngine over a database in memory (parasail's C functions called through ctypes).
With two threads parasail and pyopal get every second subject in each of two Python threads; swsearch uses its
own two. All score with BLOSUM62, a gap of k residues costing 11 + k.

Needs: pip install 'swsearch[bench]'. Takes about three minutes on two cores.
Run:   python benchmarks/library_choice.py --queries queries20.fasta [--subjects DB.fasta.gz] [--out FILE]
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import parasail
import pyopal
from common import PARASAIL_GAPS, arguments, data_line, finish, heading, read, residues, table, timed
from scoring_matrices import ScoringMatrix  # type: ignore[attr-defined]

from swsearch import Database, Scoring
from swsearch.engines.base import exact_scores
from swsearch.engines.cpu import CpuEngine
from swsearch.inputs import Query
from swsearch.job import plan_for, prepare
from swsearch.loaded import LoadedDatabase

LENGTHS = (144, 464, 1000, 3005, 5478)
"""Query lengths shown by themselves; the nearest query stands for each."""

THREADS = (1, 2)

Scan = Callable[[str], None]


def in_threads(work: Callable[[str, int], None], threads: int) -> Scan:
    """Run ``work(query, part)`` for every part at once."""

    def run(query: str) -> None:
        if threads == 1:
            return work(query, 0)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: work(query, part), range(threads)))
        return None

    return run


def parasail_scan(subjects: list[str], threads: int) -> Scan:
    parts = [subjects[k::threads] for k in range(threads)]

    def work(query: str, part: int) -> None:
        profile = parasail.profile_create_sat(query, parasail.blosum62)
        for subject in parts[part]:
            _ = parasail.sw_striped_profile_sat(profile, subject, *PARASAIL_GAPS).score

    return in_threads(work, threads)


def pyopal_scan(subjects: list[str], threads: int) -> Scan:
    matrix = ScoringMatrix.from_name("BLOSUM62")
    aligners = [pyopal.Aligner(matrix, *PARASAIL_GAPS) for _ in range(threads)]
    known = str.maketrans("UOJ", "CXL")  # letters that pyopal's BLOSUM62 lacks
    parts = [
        pyopal.Database([subject.translate(known) for subject in subjects[k::threads]], aligners[k].alphabet)
        for k in range(threads)
    ]

    def work(query: str, part: int) -> None:
        aligners[part].align(query, parts[part], mode="score", overflow="simple", algorithm="sw")

    return in_threads(work, threads)


def swsearch_scan(database: Database, engine: CpuEngine) -> Scan:
    scoring = Scoring()

    def run(query: str) -> None:
        record = Query("query", "", scoring.matrix.alphabet.encode(query))
        group = prepare(engine, [record], scoring, "local")
        with closing(LoadedDatabase(engine, database, plan_for(engine, [record], database))) as chunks:
            for loaded in chunks:
                exact_scores(engine, group, loaded)
                chunks.done(loaded)

    return run


def main() -> None:
    options = arguments(__doc__).parse_args()
    queries, records = read(options.queries, options.first), read(options.subjects)
    subjects = sorted((letters for _, letters in records), key=len)
    database = Database.from_records(records)
    contenders = {
        (name, threads): make(threads)
        for name, make in {
            "parasail": lambda threads: parasail_scan(subjects, threads),
            "pyopal": lambda threads: pyopal_scan(subjects, threads),
            "swsearch": lambda threads: swsearch_scan(database, CpuEngine(threads)),
        }.items()
        for threads in THREADS
    }
    for run in contenders.values():  # first touch of every page and kernel, not counted
        run(min((letters for _, letters in queries), key=len))
    seconds = {
        (key, query): timed(lambda run=run, query=query: run(query))
        for _, query in queries
        for key, run in contenders.items()
    }

    n_residues = residues(records)
    rows = []
    chosen = [[min((q for _, q in queries), key=lambda q: abs(len(q) - length))] for length in LENGTHS]
    for group in [*chosen, [q for _, q in queries]]:
        cells = sum(map(len, group)) * n_residues
        rates = [cells / sum(seconds[key, q] for q in group) / 1e9 for key in contenders]
        label = len(group[0]) if len(group) == 1 else f"all {len(group)}"
        rows.append([label, *(f"{rate:.1f}" for rate in rates)])
    columns = ["query length", *(f"{name} x {threads}" for name, threads in contenders)]
    lines = [*heading(__file__, ["parasail", "pyopal"]), data_line(queries, records, options)]
    finish([*lines, "GCUPS by contender x threads, one run:", "", *table(columns, rows)], options.out)


if __name__ == "__main__":
    main()
