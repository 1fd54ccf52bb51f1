"""Count the chance hits of letters of structure: 3Di between SCOPe's classes and folds, and TEA that is made up.

Domains of different folds are not related, but may share much of their structure; those of different classes share
little more than secondary structure. An E-value of E promises E hits per query in all subjects, and of unrelated
subjects the share of these. Null models come from reversed subjects; beside them stand those of proteins, of shuffled
subjects, for the same letters and matrix. TEA is made up, since its sequences need a language model: letters in the
shares of MATCHA's background with the lengths of the domains, where each letter repeats the last one with a
probability from 0 to 0.8 that is the sequence's own. Nothing is related there, and no sequence has a fold. That a
reversed subject counts in full was chosen with 400 of the domains, drawn with another seed.

Needs: 3Di of SCOPe's domains as FASTA whose headers hold the classification (data/scop40.3di.fa of
github.com/rcedgar/statsig_paper), Foldseek's data/mat3di.out, and tea/matcha.out of github.com/PickyBinders/tea. None
of them is here. Some minutes on two cores.
Run:   python -m benchmarks.statistics.structural --domains scop40.3di.fa --matrix mat3di.out --tea matcha.out
           [--first 1000] [--seed 1] [--out benchmarks/results/structural.txt]
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import swsearch
from benchmarks.support.common import Records, arguments, finish, heading, read_titles, residues, table
from benchmarks.support.timing import say

LEVELS = (0.001, 0.01, 0.1, 1.0, 10.0)
CLASSIFIED = re.compile(r"\b([a-l])\.(\d+)\.\d+\.\d+")
"""A SCOPe classification in a header: class, fold, superfamily and family."""

KINDS = ("another class", "another fold")


MOST_REPEATED = 0.8
"""Largest probability that a letter of made up TEA repeats the last one: runs of five on average."""


def make_up(matrix: Path, lengths: list[int], drawn: random.Random) -> Records:
    """Draw a sequence of each length in the shares of a matrix's background, with runs."""
    lines = matrix.read_text().splitlines()
    background = next(line.partition(":")[2].split() for line in lines if line.startswith("# Background"))
    letters = next(line.split() for line in lines if not line.startswith("#"))
    shares, records = [float(share) for share in background], []
    for number, length in enumerate(lengths):
        made, repeated = drawn.choices(letters, shares, k=length), drawn.uniform(0, MOST_REPEATED)
        for place in range(1, length):
            if drawn.random() < repeated:
                made[place] = made[place - 1]
        records.append((f"made{number}", "".join(made)))
    return records


def count(
    queries: Records, subjects: Records, groups: dict[str, tuple[str, ...]], **asked: Any
) -> Iterator[list[str]]:
    """Search, and yield rows of hits per query by kind: of other groups, or all."""
    alphabet = asked.get("alphabet") or "protein"
    kinds = KINDS if groups else ("all, unrelated",)
    counts = np.zeros((len(kinds), len(queries), len(LEVELS)), dtype=np.int64)
    share = np.zeros((len(kinds), len(queries)))
    labels = [np.array([groups[name][:depth] for name, _ in subjects]) for depth in (1, 2)] if groups else []
    with swsearch.Database.from_records(subjects, alphabet=alphabet, allow_dna=True) as database:
        places = {name: place for place, (name, _) in enumerate(subjects)}
        found = swsearch.search(queries, database, evalue=max(LEVELS), max_hits=10**6, allow_dna=True, **asked)
        for number, ((name, _), result) in enumerate(zip(queries, found, strict=True)):
            hits = [(places[hit.subject_id], hit.evalue) for hit in result.hits]
            at, evalues = np.array([place for place, _ in hits], dtype=np.int64), np.array([e for _, e in hits])
            for kind in range(len(kinds)):
                other = np.ones(len(subjects), dtype=bool)
                if groups:
                    other = (labels[kind] != np.array(groups[name][: kind + 1])).any(axis=1)
                share[kind, number] = other.mean()
                unrelated = np.sort(evalues[other[at]])
                counts[kind, number] = np.searchsorted(unrelated, LEVELS, side="right")
    for kind, of_kind, part in zip(kinds, counts, share, strict=True):
        errors = of_kind.std(axis=0, ddof=1) / len(queries) ** 0.5
        yield [
            kind, f"{part.mean():.2f}", *(f"{mean:.3g}" for mean in of_kind.mean(axis=0)),
            f"{errors[1]:.2g}", f"{errors[3]:.2g}", f"{np.median(of_kind[:, 3]):.3g}",
        ]  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("--domains", type=Path, required=True, help="3Di of SCOPe's domains, FASTA")
    parser.add_argument("--matrix", type=Path, required=True, help="Foldseek's mat3di.out")
    parser.add_argument("--tea", type=Path, help="matcha.out; without it TEA is left out")
    parser.add_argument("--first", type=int, default=1000, help="queries to draw, default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn, default %(default)s")
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    titled = [(CLASSIFIED.search(title), letters) for title, letters in read_titles(options.domains)]
    domains = [(f"d{k}", letters) for k, (found, letters) in enumerate(titled) if found]
    groups = {f"d{k}": found.groups() for k, (found, _) in enumerate(titled) if found}
    queries = drawn.sample(domains, options.first)
    own: dict[str, Any] = {"matrix": options.matrix, "alphabet": "3di"}
    cases: list[tuple[str, Records, Records, dict[str, tuple[str, ...]], dict[str, Any]]] = [
        ("3Di, local, reversed", queries, domains, groups, own),
        ("3Di, local, shuffled as proteins", queries, domains, groups, {"matrix": options.matrix}),
        ("3Di, semiglobal, reversed", queries, domains, groups, own | {"mode": "semiglobal"}),
        ("3Di, global, reversed", queries, domains, groups, own | {"mode": "global"}),
    ]
    if options.tea is not None:
        made = make_up(options.tea, [len(letters) for _, letters in domains], drawn)
        own = {"alphabet": "tea"}
        cases.append(("TEA, made up, local, reversed", made[: options.first], made[options.first :], {}, own))
    rows = []
    for name, searched, subjects, classified, asked_for in cases:
        for row in count(searched, subjects, classified, **asked_for):
            rows.append([name, *row])
            say(" ".join(rows[-1]))
    lines = [
        *heading(__file__, ["numpy"]),
        f"{options.domains.name}: {len(domains):,} domains, {residues(domains):,} letters; {options.matrix.name}; "
        f"{options.first:,} queries, seed {options.seed}",
        "",
        "Hits per query with an E-value of at most 0.001 to 10 among subjects that are not of the query's class or",
        "fold, and their share of all subjects: chance gives E times the share. Then the standard errors",
        "of the means at 0.01 and 1, and the median at 1.",
        "",
        *table(
            ["letters, mode, null", "hits in", "share", *(f"E <= {level:g}" for level in LEVELS), "error at 0.01",
             "error at 1", "median at 1"],
            rows,
        ),
    ]  # fmt: skip
    finish(lines, options.out)


if __name__ == "__main__":
    main()
