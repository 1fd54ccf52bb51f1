"""Small proteins and databases that all kinds of fault are tried on; the same in every run."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from faults.running import Done, command

LETTERS = "ARNDCQEGHILKMFPSTWYV"
N_SUBJECTS = 70
"""More than the 64 of a block."""

COLUMNS = "6 qseqid sseqid score evalue qstart qend sstart send cigar stitle"
SEARCH = ["--outfmt", COLUMNS, "--threads", "1", "--engine", "cpu", "--quiet"]


def protein(generator: random.Random, length: int) -> str:
    """Return random letters."""
    return "".join(generator.choices(LETTERS, k=length))


def relative(generator: random.Random, letters: str, rate: float) -> str:
    """Return a mutant: so much of it replaced, some of it missing."""
    mutant = [generator.choice(LETTERS) if generator.random() < rate else letter for letter in letters]
    cut = generator.randrange(len(mutant))
    return "".join(mutant[:cut] + mutant[cut + generator.randrange(4) :])


def records(seed: int, count: int, longest: int = 120) -> list[tuple[str, str]]:
    """Return names and letters; some are related to the queries, some have lower case, one has no letter."""
    generator = random.Random(seed)
    made = []
    for number in range(count):
        letters = protein(generator, generator.randint(1, longest))
        if number % 5 == 0:
            letters = relative(generator, QUERIES[number % 2][1], 0.3)
        if number % 4 == 0:
            at = generator.randrange(len(letters))
            letters = letters[:at] + letters[at : at + 12].lower() + letters[at + 12 :]
        made.append((f"s{seed}_{number} protein {number} of a sample", "" if number == 7 else letters))
    return made


def fasta(entries: list[tuple[str, str]]) -> str:
    """Write records."""
    return "".join(f">{header}\n{letters}\n" for header, letters in entries)


QUERIES = [(f"q{n}", protein(random.Random(n), 60 + 20 * n)) for n in range(2)]


def write_samples(folder: Path) -> None:
    """Write queries, subjects and what is appended."""
    (folder / "queries.fasta").write_text(fasta(QUERIES))
    (folder / "subjects.fasta").write_text(fasta(records(1, N_SUBJECTS)))
    (folder / "more.fasta").write_text(fasta(records(2, 9)))


def build_samples(folder: Path) -> list[str]:
    """Build databases of all layouts from the samples; return their names."""
    masks = {"plain.h5": "none", "lower.h5": "lower"}
    try:
        import pytantan  # noqa: F401
    except ImportError:
        pass
    else:
        masks["tantan.h5"] = "tantan"
    for name, mask in masks.items():
        succeed(command("db", "build", "subjects.fasta", "-o", name, "--mask", mask, "-q", cwd=folder))
    shutil.copy(folder / "plain.h5", folder / "two.h5")
    succeed(command("db", "append", "two.h5", "more.fasta", "-q", "--on-duplicate", "keep", cwd=folder))
    return [*masks, "two.h5"]


INPUTS = ["queries.fasta", "subjects.fasta", "more.fasta", "db.h5"]
"""Files that most commands read."""


def make_inputs(folder: Path) -> None:
    """Write `INPUTS`, with the plain database as ``db.h5``."""
    write_samples(folder)
    build_samples(folder)
    shutil.copy(folder / "plain.h5", folder / "db.h5")


def copy_inputs(source: Path, folder: Path) -> None:
    """Copy what `make_inputs` wrote into another folder."""
    for each in INPUTS:
        shutil.copy(source / each, folder / each)


def succeed(done: Done) -> Done:
    """Return what a command did; raise unless it succeeded: it prepares cases."""
    if done.code:
        raise RuntimeError(f"a preparation failed with exit {done.code}: {done.err}")
    return done
