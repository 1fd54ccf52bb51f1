"""Measure the kernels of a wheel, which ziglang compiled, beside those of this installation, which its compiler made.

Both extensions are loaded into one process and take turns: scans of one query against every subject in memory, by
every instruction set of this machine, and one global alignment of two random sequences. Times are processor seconds
of one thread, so that what else the machine does disturbs less; a ratio is the median of those of the turns. Scores
and alignments of both must be equal.

Needs: a wheel (python packaging/wheels.py), swsearch installed from source. Two minutes.
Run:   python -m benchmarks.speed.wheels --wheel dist/swsearch-...x86_64.whl [--subjects DB.fasta.gz] [--out FILE]
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np

import swsearch
from benchmarks.support.common import arguments, command, finish, heading, read, residues, table
from benchmarks.support.timing import Timing, say, take_turn
from swsearch.engines.cpu import extension

LENGTHS = (144, 375, 1000)
"""Of the random queries."""

PAIR = 5000
"""Length of both sequences of the pair."""

TURNS = 9

LETTERS = "ARNDCQEGHILKMFPSTWYV"


def extension_in(wheel: Path, folder: Path) -> ModuleType:
    """Load the extension of a wheel."""
    name = "swsearch/engines/cpu/_simd.abi3.so"
    with zipfile.ZipFile(wheel) as packed:
        path = packed.extract(name, folder)
    spec = spec_from_file_location("swsearch.engines.cpu._simd", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def using(module: ModuleType, instructions: str) -> Iterator[None]:
    """Have an extension, and an instruction set, used."""
    kept, extension.load = extension.load, lambda: module
    os.environ[extension.SWITCH] = instructions
    try:
        yield
    finally:
        extension.load = kept
        del os.environ[extension.SWITCH]


def main() -> None:
    """Take turns, compare, and print."""
    parser = arguments(__doc__)
    parser.add_argument("--wheel", type=Path, required=True, help="of this machine's architecture")
    options = parser.parse_args()
    subjects = read(options.subjects)
    drawn = random.Random(1)
    queries = ["".join(drawn.choices(LETTERS, k=length)) for length in LENGTHS]
    pair = ["".join(drawn.choices(LETTERS, k=PAIR)) for _ in range(2)]
    names = extension.instruction_sets()
    turns: dict[tuple[str, str, str], Timing] = {}
    differing = set()
    with tempfile.TemporaryDirectory() as folder, swsearch.Database.from_records(subjects) as database:
        modules = {"source": extension.load(), "wheel": extension_in(options.wheel, Path(folder))}
        work = {
            f"query of {len(query)}": partial(swsearch.score, [query], database, threads=1, engine="cpu")
            for query in queries
        }
        work[f"pair of {PAIR}"] = lambda: swsearch.align(*pair, threads=1, mode="global").coordinates
        for turn in range(TURNS):
            for instructions in names:
                for what, call in work.items():
                    found = {}
                    for made, module in modules.items():
                        with using(module, instructions):
                            timing = turns.setdefault((instructions, what, made), Timing())
                            found[made] = take_turn(timing, call)
                    if not np.array_equal(found["source"], found["wheel"]):
                        differing.add(f"{instructions}, {what}")
            say(f"turn {turn + 1}")
    cells = {f"query of {length}": length * residues(subjects) for length in LENGTHS}
    cells[f"pair of {PAIR}"] = PAIR**2
    lines = heading(__file__, ["numpy"])
    lines += [f"source: {command('c++', '--version').splitlines()[0]}; wheel: {options.wheel.name}"]
    lines += [f"{len(subjects):,} subjects, {residues(subjects):,} residues; {TURNS} turns"]
    lines += ["GCUPS by processor seconds of one thread, medians; the last column is wheel over source", ""]
    lines += table(["instruction set", "what", "source", "wheel", "ratio"], rows_of(turns, names, list(work), cells))
    lines += ["", f"different results: {', '.join(sorted(differing)) or 'none'}"]
    finish(lines, options.out)
    sys.exit(bool(differing))


def rows_of(
    turns: dict[tuple[str, str, str], Timing], names: tuple[str, ...], work: list[str], cells: dict[str, int]
) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    for name in names:
        for what in work:
            source, wheel = turns[name, what, "source"].busy, turns[name, what, "wheel"].busy
            rates = [f"{cells[what] / statistics.median(busy) / 1e9:.2f}" for busy in (source, wheel)]
            ratio = statistics.median(a / b for a, b in zip(source, wheel, strict=True))
            yield [name, what, *rates, f"{ratio:.3f}"]


if __name__ == "__main__":
    main()
