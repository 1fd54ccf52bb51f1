"""The arguments of every kernel in ``cuda/``, by name: the one table that launches and tests read.

Each entry mirrors the parameters of a kernel, in their order. `tests/gpu/test_arguments.py` compares the table with
the sources, so that neither can change without the other. What belongs here describes arguments; `kernels` launches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter


@dataclass(frozen=True)
class KernelArguments:
    """The arguments of one kernel.

    Parameters
    ----------
    kernel : str
        Its name.
    source : str
        Its file in ``cuda/``, without ``.cu``.
    table : tuple of (str, str)
        Name and type of each argument in order. Types are letters of `struct`: ``P`` an address, ``i`` and ``I`` 32
        bits with and without sign, ``q`` and ``Q`` 64 bits.
    """

    kernel: str
    source: str
    table: tuple[tuple[str, str], ...]

    @cached_property
    def _values_of(self) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
        # made once: a launch only calls it
        return itemgetter(*self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments, in order."""
        return tuple(name for name, _ in self.table)

    @property
    def signature(self) -> str:
        """Types of the arguments, in order."""
        return "".join(kind for _, kind in self.table)

    def in_order(self, arguments: Mapping[str, int]) -> tuple[int, ...]:
        """Return the values of arguments that are given by name in the kernel's order.

        Raises
        ------
        TypeError
            If an argument is missing, or one is given that the kernel does not have.
        """
        # as many names as the kernel has, and each of the kernel's among them: there are no others
        if len(arguments) == len(self.table):
            try:
                return self._values_of(arguments)
            except KeyError:
                pass
        missing = [name for name in self.names if name not in arguments]
        unknown = [name for name in arguments if name not in self.names]
        raise TypeError(f"arguments of {self.kernel}: missing {missing}, unknown {unknown}")

    def by_name(self, values: Sequence[int]) -> dict[str, int]:
        """Return the names and values of arguments that are given in the kernel's order, for tests."""
        return dict(zip(self.names, values, strict=True))


def _arguments(kernel: str, source: str, text: str) -> KernelArguments:
    """Read a table that is written as ``name:type`` words."""
    table = tuple((name, kind) for name, kind in (word.split(":") for word in text.split()))
    return KernelArguments(kernel, source, table)


BATCH = _arguments(
    "swsearch_batch",
    "batch",
    """
    residues:P tile_offsets:P lengths:P n_subjects:i first_block:i n_jobs:i pipeline_warps:i
    profile:P strips:P n_strips:i
    bias:i limit:i one:I
    boundary:P region_columns:I n_regions:i pipeline_columns:I taken:P
    scores:P score_stride:q counter:P uncertain:P most_uncertain:I
    """,
)
WAVEFRONT = _arguments(
    "swsearch_wavefront",
    "wavefront",
    """
    residues:P tile_offsets:P lengths:P n_subjects:i
    profiles:P queries:P tasks:P n_listed:P n_tasks:I query_list:P n_queries:i
    bias:i limit:i one:I
    boundary:P boundary_offsets:P
    scores:P score_stride:q counter:P
    """,
)
ARRANGE = _arguments("swsearch_arrange", "scores", "residues:P n_tiles:Q")
_COLLECT = """
    scores:P score_stride:q n_subjects:i lengths:P
    thresholds:P n_lengths:i least:P
    begin:Q end:Q list:P capacity:I count:P
    """
COLLECT_TASKS = _arguments("swsearch_collect_tasks", "scores", _COLLECT)
COLLECT_HITS = _arguments("swsearch_collect_hits", "scores", _COLLECT)
PAIR = _arguments(
    "swsearch_pair",
    "pair",
    """
    query:P rows:i columns:P n:i table:P
    first_row:i first_column:i top:P left:P corner:i
    pays_rows:i pays_columns:i open:i extend:i one:I
    ring:P ring_columns:i progress:P wrap:P
    row_checks:P check_strips:i column_checks:P check_mask:I
    last_row:P last_column:P directions:P best:P
    """,
)
PAIRS = _arguments(
    "swsearch_pairs",
    "pairs",
    """
    queries:P subjects:P pairs:P n_pairs:i table:P
    free_query_start:i free_query_end:i free_subject_start:i free_subject_end:i
    open:i extend:i one:I most_rows:i most_columns:i
    boundaries:P edges:P scratch_runs:P directions:P direction_words:Q
    results:P run_places:P runs:P most_runs:I counters:P
    """,
)
TRACE = _arguments("swsearch_trace", "trace", "directions:P n:i row:i column:i state:I runs:P result:P")

ALL = {each.kernel: each for each in (BATCH, WAVEFRONT, ARRANGE, COLLECT_TASKS, COLLECT_HITS, PAIR, PAIRS, TRACE)}
"""Every kernel's arguments, by its name."""
