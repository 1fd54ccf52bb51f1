"""Search and align with the installed package, and print a digest of every output: the same wherever it runs.

Each instruction set of the machine must print the same bytes, and the engines the scores of the reference. `check.py`
runs this where a wheel or the source distribution was installed, on x86-64 and on 64-bit Arm, and compares.

Needs: swsearch, nothing else.
Run:   python packaging/probe.py QUERIES.fasta SUBJECTS.fasta.gz
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import random
import sys

import swsearch
from swsearch import extension

SUBJECTS = 300
"""Subjects of the searched database; an emulator searches it in seconds."""

SMALL, SMALL_RESIDUES = 12, 60
"""Random sequences for the reference, which computes a cell at a time."""

FORMATS = ("6 std score qcovs cigar", "0", "json")

MODES = ("local", "global", "semiglobal")


def main() -> int:
    """Print a line for each output."""
    queries, subjects = sys.argv[1:3]
    python = f"Python {platform.python_version()}"
    print(
        f"# {platform.machine()}, {python}, {', '.join(extension.instruction_sets())}; {swsearch.__file__}",
        flush=True,
    )
    with swsearch.Database.from_fasta([subjects]) as whole:
        records = [(whole.identifier(place), whole.sequence(place)) for place in range(SUBJECTS)]
    for mode in MODES:
        compare_engines(mode)
        digests = {name: digest(queries, records, mode, name) for name in extension.instruction_sets()}
        if len(set(digests.values())) > 1:
            print(f"probe.py: {mode}: instruction sets print different bytes: {digests}", file=sys.stderr)
            return 1
        print(mode, next(iter(digests.values())))
    return 0


def digest(queries: str, records: list[tuple[str, str]], mode: str, instructions: str) -> str:
    """Return the SHA-256 of a search's outputs, computed with an instruction set."""
    os.environ[extension.SIMD_VARIABLE] = instructions
    written = hashlib.sha256()
    with swsearch.Database.from_records(records) as database:
        for form in FORMATS:
            found = swsearch.search(queries, database, mode=mode, max_hits=20, engine="cpu")
            swsearch.write(found, text := io.StringIO(), form)
            written.update(text.getvalue().encode())
    del os.environ[extension.SIMD_VARIABLE]
    return written.hexdigest()


def compare_engines(mode: str) -> None:
    """Raise `SystemExit` unless every instruction set scores as the reference does."""
    drawn = random.Random(mode)
    letters = ["".join(drawn.choices("ACDEFGHIKLMNPQRSTVWYX*", k=SMALL_RESIDUES)) for _ in range(SMALL)]
    with swsearch.Database.from_records(letters) as database:
        expected = swsearch.score(letters[:3], database, mode=mode, engine="reference")
        for name in extension.instruction_sets():
            os.environ[extension.SIMD_VARIABLE] = name
            found = swsearch.score(letters[:3], database, mode=mode, engine="cpu")
            if not (found == expected).all():
                raise SystemExit(f"probe.py: {mode}, {name}: got {found.tolist()}, expected {expected.tolist()}")
    del os.environ[extension.SIMD_VARIABLE]


if __name__ == "__main__":
    sys.exit(main())
