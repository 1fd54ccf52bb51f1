"""How many faults put into the product does the test suite find? Mutants: one operator of one line changed.

Lines and operators are drawn with --seed: comparisons, arithmetic, ``and`` and ``or``, ``not``, numbers, booleans,
conditions. A mutant stands in a copy of the checkout; one of the tests that run its line must fail, of which at most
--tests are run, the most specific ones. Tests that fail without any mutant are left out. A mutant whose line no test
runs in its own process counts as "not run": tests that start commands may still find it.

Needs: a coverage file that says which test runs which line, made in this checkout by
       pip install pytest-cov
       COVERAGE_FILE=FILE pytest -n 2 --cov=swsearch --cov=db --cov-context=test --cov-report=
Takes: some seconds for each mutant. A mutant may remove files: run it as a user who may not remove those of others.
Run:   python -m benchmarks.agreement.mutants --coverage FILE [--count 200] [--seed 1] [--tests 25]
           [--packages pipeline report db server] [--list FILE] [--out benchmarks/results/mutants.txt]
`--list` also writes each mutant and the tests that found it, as JSON lines.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.support.common import arguments, finish, heading, table

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "swsearch",
    "db",
    "cuda",
    "tests",
    "benchmarks",
    "examples",
    "docs",
    "README.md",
    "setup.cfg",
    "pyproject.toml",
)
SECONDS = 120
"""A mutant whose tests take longer hangs, and counts as found."""

WHOLE_SECONDS = 3600
"""For all tests without a mutant."""

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Mutant(NamedTuple):
    """One changed expression."""

    file: str
    line: int
    before: str
    after: str
    source: str


def mutated(node: ast.AST) -> ast.AST | None:
    """Return a node that means something else; None for nodes that are left alone."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not isinstance(node.left, ast.JoinedStr):
        return ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(SWAPS[type(node.op)](), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.Constant(not node.value)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ast.Constant(node.value + 1)
    return None


def expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Walk over expressions that run: no annotations, no text."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "type_params"} or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield child
            if isinstance(child, ast.AST):
                yield from expressions(child)


def mutants_of(path: Path) -> list[Mutant]:
    """Make every mutant of a file."""
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    made = []
    for node in expressions(ast.parse(source)):
        new = mutated(node)
        if new is None or node.lineno != node.end_lineno:
            continue
        row = lines[node.lineno - 1].encode()
        before, after = row[node.col_offset : node.end_col_offset].decode(), f"({ast.unparse(new)})"
        line = (row[: node.col_offset] + after.encode() + row[node.end_col_offset :]).decode()
        text = "".join([*lines[: node.lineno - 1], line, *lines[node.lineno :]])
        made.append(Mutant(str(path.relative_to(ROOT)), node.lineno, before, after, text))
    return made


def draw(packages: list[str], count: int, seed: int) -> list[Mutant]:
    """Draw mutants, each line of the packages as likely as any other."""
    files = [path for name in packages for path in sorted((ROOT / package_folder(name)).rglob("*.py"))]
    by_line: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in (mutant for path in files for mutant in mutants_of(path)):
        by_line.setdefault((mutant.file, mutant.line), []).append(mutant)
    drawn = random.Random(seed)
    return [drawn.choice(by_line[line]) for line in drawn.sample(sorted(by_line), count)]


def package_folder(name: str) -> str:
    """Name the folder of a package: that of the database stands at the top."""
    return name if name == "db" else f"swsearch/{name}"


class Runs:
    """Which tests run which lines."""

    def __init__(self, path: Path, tests: set[str]) -> None:
        from coverage import CoverageData

        data = CoverageData(str(path))
        data.read()
        self.lines: dict[tuple[str, int], set[str]] = {}
        self.breadth: Counter[str] = Counter()
        for file in data.measured_files():
            name = str(Path(file).relative_to(ROOT))
            for line, contexts in data.contexts_by_lineno(file).items():
                ran = {context.rpartition("|")[0] for context in contexts} & tests
                self.lines[name, line] = ran
                self.breadth.update(ran)

    def of(self, mutant: Mutant, most: int) -> list[str]:
        """Return tests that run a line, those first that run the fewest lines in all."""
        return sorted(self.lines.get((mutant.file, mutant.line), ()), key=lambda test: (self.breadth[test], test))[
            :most
        ]


def copy_checkout(folder: Path) -> Path:
    """Copy what the tests need."""
    for name in COPIED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    return folder


def failing(folder: Path, tests: list[str], seconds: int = SECONDS) -> set[str]:
    """Run tests in a copy, and return those that fail; all of them where they hang or end the process."""
    if not tests:  # pytest would run all
        return set()
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly", "-rfE", "--tb=no", "--no-header"]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *tests],
            cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return set(tests)
    if done.returncode not in {0, 1}:
        return set(tests)
    rows = [row for row in done.stdout.splitlines() if row.startswith(("FAILED", "ERROR"))]
    return {row.split(maxsplit=1)[1].split(" - ")[0] for row in rows} & set(tests)


def judge(folder: Path, mutant: Mutant, tests: list[str]) -> list[str]:
    """Put a mutant into a copy, run tests, and take it out again."""
    path = folder / mutant.file
    original = path.read_text()
    path.write_text(mutant.source)
    try:
        return sorted(failing(folder, tests))
    finally:
        path.write_text(original)


def collected() -> set[str]:
    """Ask pytest for the names of the tests of this checkout."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-n", "0", "--exhaustive"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {row for row in done.stdout.splitlines() if "::" in row}


def main() -> int:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--coverage", type=Path, required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", type=int, default=25, help="tests for each mutant, default %(default)s")
    parser.add_argument("--packages", nargs="+", default=["pipeline", "report", "db", "server"])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--list", type=Path, metavar="FILE")
    options = parser.parse_args()
    runs = Runs(options.coverage, collected())
    mutants = draw(options.packages, options.count, options.seed)
    chosen = [runs.of(mutant, options.tests) for mutant in mutants]
    with tempfile.TemporaryDirectory() as work:
        folders = [copy_checkout(Path(work, str(process))) for process in range(options.processes)]

        def every(process: int) -> list[tuple[int, list[str]]]:
            mine = range(process, len(mutants), options.processes)
            wrong = failing(
                folders[process], sorted({test for index in mine for test in chosen[index]}), WHOLE_SECONDS
            )
            return [
                (
                    index,
                    judge(folders[process], mutants[index], [test for test in chosen[index] if test not in wrong]),
                )
                for index in mine
            ]

        with ThreadPoolExecutor(options.processes) as pool:
            found = dict(pair for pairs in pool.map(every, range(options.processes)) for pair in pairs)
    if options.list:
        records = [mutant._asdict() | {"run": chosen[i], "found": found[i]} for i, mutant in enumerate(mutants)]
        options.list.write_text("".join(json.dumps({k: r[k] for k in r if k != "source"}) + "\n" for r in records))
    rows = []
    for name in [*options.packages, "all"]:
        mine = [i for i, m in enumerate(mutants) if name == "all" or m.file.startswith(package_folder(name) + "/")]
        rows.append([name, len(mine), sum(bool(found[i]) for i in mine), sum(not chosen[i] for i in mine)])
    finish(
        [*heading(__file__, ["pytest"]), "", *table(["package", "mutants", "found", "not run"], rows)], options.out
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
