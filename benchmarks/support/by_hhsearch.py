"""Search by iteration with HH-suite's hhsearch, and print every iteration's hits: what `iterated.py` runs.

The database has a model of each subject alone. A search's alignment of the query and its hits of E <= 0.001, the
default of hhsearch, is the query of the next search: iterations as hhblits does them, but without its prefilter. A
query whose alignment gets no new sequence has converged. Lines are iteration, query, subject and E-value,
tab-separated.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from benchmarks.support.common import read, write

MAX_HITS = 10**6
"""More hits than any query has."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", type=Path)
    parser.add_argument("database", help="prefix of the database's files")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--evalue", type=float, default=100.0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    words = (
        f"hhsearch -v 0 -cpu {options.threads} -E {options.evalue} -p 0 -z 1 -b 1 -Z {MAX_HITS} -B {MAX_HITS} -alt 1 "
        f"-i in.a3m -d {Path(options.database).resolve()} -o /dev/null -blasttab hits -oa3m out.a3m"
    ).split()
    environment = {"HHLIB": "/usr/share/hhsuite"} | os.environ
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for query, letters in read(options.queries):
            write(folder / "in.a3m", [(query, letters)])
            included = {query}
            for iteration in range(1, options.iterations + 1):
                subprocess.run(words, cwd=folder, env=environment, check=True)
                for line in (folder / "hits").read_text().splitlines():
                    cells = line.split("\t")
                    print(iteration, query, cells[1], cells[10], sep="\t")
                (folder / "out.a3m").replace(folder / "in.a3m")
                before, included = included, {key for key, _ in read(folder / "in.a3m")}
                if included <= before:
                    break
