"""Random alignments of one query, that need not be the best ones, and their columns one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from swsearch.alignment_table import ALIGNMENT_COLUMNS, AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.engines.pools import make_pool

RUNS = st.lists(st.tuples(st.integers(1, 40), st.sampled_from("MMMID")), max_size=6)
OUTSIDE = st.integers(0, 30)


@dataclass
class Alignments:
    """A table, the query's codes, the pool of its subjects, one per alignment, and where each begins there."""

    table: AlignmentTable
    query: np.ndarray
    pool: tuple[np.ndarray, np.ndarray]

    @property
    def starts(self) -> np.ndarray:
        return self.pool[1][:-1]

    def columns(self, k: int) -> list[tuple[str, int, int, bool]]:
        """Operation of each column, the next residues of query and pool, and whether a run begins."""
        a, b = int(self.table.query_start[k]), int(self.starts[k] + self.table.subject_start[k])
        columns = []
        for length, operation in self.table.cigar(k):
            for place in range(length):
                columns.append((operation, a, b, place == 0))
                a, b = a + (operation != "D"), b + (operation != "I")
        return columns


def table_of(starts: list[tuple[int, int]], runs: list[list[tuple[int, str]]]) -> AlignmentTable:
    """A table of starts in query and subject, and runs; counts that do not follow from these are 0."""
    numbers = {name: np.zeros(len(runs), dtype=np.int64) for name in ALIGNMENT_COLUMNS}
    for k, (begins, each) in enumerate(zip(starts, runs, strict=True)):
        for name, begin, gap in zip(("query", "subject"), begins, "DI", strict=True):
            numbers[f"{name}_start"][k] = begin
            numbers[f"{name}_end"][k] = begin + sum(n for n, operation in each if operation != gap)
        numbers["length"][k] = sum(n for n, _ in each)
        numbers["gaps"][k] = sum(n for n, operation in each if operation != "M")
    return AlignmentTable(
        **numbers,
        run_offsets=np.cumsum([0, *map(len, runs)], dtype=np.int64),
        run_lengths=np.array([n for each in runs for n, _ in each], dtype=np.int64),
        run_operations=np.frombuffer("".join(op for each in runs for _, op in each).encode(), dtype=np.uint8),
    )


@st.composite
def some_alignments(draw) -> Alignments:
    """Up to five alignments of a query with subjects, of a few letters or like coiled coils."""
    runs = draw(st.lists(RUNS, max_size=5))
    starts = [(draw(OUTSIDE), draw(OUTSIDE)) for _ in runs]
    table = table_of(starts, runs)
    generator = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    letters = generator.permutation(20)[: draw(st.integers(1, 20))].astype(np.uint8)
    kinds = [letters] * 7
    if draw(st.booleans()):
        core, charged = map(PROTEIN.encode, ("AILMV", "DEKRQ"))
        kinds = [core if place in (0, 3) else charged for place in range(7)]
    lengths = [int(table.query_end.max(initial=1)) + draw(OUTSIDE)]
    lengths += [end + draw(OUTSIDE) for end in table.subject_end.tolist()]
    sequences = []
    for n in lengths:
        codes = np.resize([generator.choice(letters) for letters in kinds], n).astype(np.uint8)
        changed = generator.random(n) < draw(st.sampled_from([0.0, 0.2, 0.4, 1.0]))
        codes[changed] = generator.integers(0, 20, int(changed.sum()))
        sequences.append(codes)
    return Alignments(table, sequences[0], make_pool(sequences[1:]))
