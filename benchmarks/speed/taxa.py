"""What a search of some taxa takes, beside one of a database of these alone: whole commands, in turn.

Sequences of a FASTA file are given taxids, evenly: as many as there are human proteins in Swiss-Prot, 20,240, are of
9606, the others of a hundred other taxa. Three commands search one query, then `--first` of them: the database with
`--taxids 9606`; a database that holds these sequences alone; and the whole database without a filter. Hits of the
first must be those of the third that are of 9606.

Needs: Swiss-Prot as FASTA, twice its size of free disk; half a minute.
Run:   python -m benchmarks.speed.taxa --subjects swissprot.fasta [--first 20] [--turns 5] [--threads 2]
                [--engine cpu] [--out benchmarks/results/taxa.txt, or taxa_gpu.txt]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.support.common import arguments, finish, heading, read, residues, swsearch, table, write
from benchmarks.support.timing import Timing, say, take_turn

HUMAN = 20_240
"""Human proteins in Swiss-Prot."""

TAXID, OTHERS = 9606, 100


def main() -> None:
    """Build the databases, search them in turn, and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--turns", type=int, default=5, help="of each command, default %(default)s")
    parser.add_argument("--threads", type=int, default=2, help="default %(default)s")
    parser.add_argument("--engine", default="cpu", choices=("cpu", "gpu"), help="default %(default)s")
    options = parser.parse_args()
    subjects, queries = read(options.subjects), read(options.queries, options.first)
    step = max(len(subjects) // HUMAN, 1)
    chosen = list(range(0, len(subjects), step))[:HUMAN]
    human = set(chosen)
    lines = [
        *heading(__file__, []),
        f"{options.subjects.name}: {len(subjects):,} sequences, {residues(subjects):,} residues; {len(chosen):,} of "
        f"them ({residues([subjects[place] for place in chosen]):,} residues) are given taxid {TAXID}; "
        f"engine {options.engine}, {options.threads} threads; medians of {options.turns} turns, the whole "
        "database once",
        "",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = write(folder / "whole.fasta", subjects)
        alone = write(folder / "alone.fasta", (subjects[place] for place in chosen))
        rows = (
            f"{title.split()[0]} {TAXID if place in human else TAXID + 1 + place % OTHERS}\n"
            for place, (title, _) in enumerate(subjects)
        )
        (folder / "taxids").write_text("".join(rows))
        swsearch("db", "build", whole, "-o", folder / "whole.h5", "--taxids", folder / "taxids", "-q")
        swsearch("db", "build", alone, "-o", folder / "alone.h5", "-q")
        found = []
        for count in (1, len(queries)):
            some = write(folder / "some.fasta", queries[:count])
            found += _measured(folder, some, queries[:count], options.turns, (options.engine, options.threads))
        lines += table(
            ["queries", "residues", "some taxa, s", "a database of these, s", "ratio", "the whole database, s"], found
        )
        lines += ["", "Of each the wall seconds of the whole command, and the processor seconds in it."]
    finish(lines, options.out)


def _measured(
    folder: Path, some: Path, queries: list[tuple[str, str]], turns: int, place: tuple[str, int]
) -> list[list[object]]:
    """Search with three commands in turn; return a row of the table."""
    engine, threads = place
    shared = ("--engine", engine, "--threads", threads, "-q")
    works = {
        "taxa": ("whole.h5", "--taxids", TAXID),
        "alone": ("alone.h5",),
        "whole": ("whole.h5", "--max-hits", 10**6),
    }
    times = {name: Timing() for name in works}
    for turn in range(turns + 1):  # the first reads the files into the system's memory
        for name, (database, *more) in works.items():
            if turn and name == "whole":
                continue
            line = ("search", some, folder / database, *more, *shared, "-o", folder / f"{name}.tsv")
            timing = times[name] if turn or name == "whole" else Timing()
            take_turn(timing, lambda line=line: swsearch(*line))  # type: ignore[misc]
            say(f"{len(queries)} queries, turn {turn}, {name}: {timing.wall[-1]:.2f} s")
    _check(folder, threads)
    taxa, alone, whole = times.values()
    ratios = taxa.median / alone.median, statistics.median(taxa.busy) / statistics.median(alone.busy)
    shown = [f"{each.median:.2f}, {statistics.median(each.busy):.2f}" for each in (taxa, alone, whole)]
    return [[len(queries), f"{residues(queries):,}", shown[0], shown[1], "{:.2f}, {:.2f}".format(*ratios), shown[2]]]


def _check(folder: Path, threads: int) -> None:
    """Exit unless the filter found what is of the taxon among all hits."""
    human = {line.split()[0] for line in (folder / "taxids").read_text().splitlines() if line.endswith(f" {TAXID}")}
    everything = (folder / "whole.tsv").read_text().splitlines()
    expected = [line for line in everything if line.split("\t")[1] in human]
    if (folder / "taxa.tsv").read_text().splitlines() != expected:
        sys.exit(f"{folder}: the filter found other hits than all hits hold, with {threads} threads")


if __name__ == "__main__":
    main()
