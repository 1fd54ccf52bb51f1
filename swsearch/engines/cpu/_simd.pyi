from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import ByteArray
from swsearch.blocks import FloatArray, IntArray
from swsearch.engines.base import Progress, ScoreArray
from swsearch.engines.cpu.columns import ColumnArguments, RunArguments
from swsearch.engines.cpu.tracing import Counted, GapCosts, ScoreBytes

def align(
    query: ByteArray,
    subject: ByteArray,
    scores: ScoreBytes,
    max_score: int,
    gap_open: int,
    gap_extend: int,
    local: bool,
    free_ends: int,
    with_path: bool,
    memory: int,
    threads: int,
    tile: int,
    beam: int,
    instructions: str,
    rows: ScoreBytes = ...,
    gaps: GapCosts = ...,
    /,
) -> Counted | int: ...
def align_many(
    queries: ByteArray,
    subjects: ByteArray,
    places: IntArray,
    known: IntArray,
    scores: ScoreBytes,
    max_score: int,
    gap_open: int,
    gap_extend: int,
    local: bool,
    free_ends: int,
    with_path: bool,
    memory: int,
    threads: int,
    tile: int,
    beam: int,
    instructions: str,
    rows: ScoreBytes = ...,
    gaps: GapCosts = ...,
    /,
) -> tuple[bytes, bytes, bytes]: ...
def align_further(
    query: ByteArray,
    subject: ByteArray,
    scores: ScoreBytes,
    pairs: IntArray,
    gap_open: int,
    gap_extend: int,
    least: int,
    most: int,
    rows: ScoreBytes = ...,
    gaps: GapCosts = ...,
    /,
) -> list[Counted]: ...
def count(common: ColumnArguments, counts: IntArray, /) -> None: ...
def rows(
    common: ColumnArguments,
    offsets: IntArray,
    query_rows: ByteArray,
    middle: ByteArray,
    subject_rows: ByteArray,
    /,
) -> None: ...
def trace_back_operations(common: ColumnArguments, sizes: IntArray, /) -> bytes: ...
def instruction_sets() -> list[tuple[str, bool]]: ...
def search(
    codes: ByteArray,
    query_offsets: IntArray,
    longest_16: npt.NDArray[np.int32],
    row_scores: ScoreBytes,
    row_costs: npt.NDArray[np.int16],
    residues: ByteArray,
    column_offsets: IntArray,
    lengths: npt.NDArray[np.int32],
    chosen: IntArray,
    only_chosen: bool,
    scores: ScoreBytes,
    gap_first: int,
    gap_extend: int,
    most_gap_first: int,
    most_gap_extend: int,
    mode: int,
    first_bits: int,
    last_bits: int,
    threads: int,
    way: int,
    instructions: str,
    progress: Progress | None,
    values: ScoreArray,
    saturated: ByteArray,
    frame_shift: int = ...,
    /,
) -> tuple[int, int, int]: ...
def align_shifted(
    strands: ByteArray,
    subjects: ByteArray,
    places: IntArray,
    scores: ScoreBytes,
    gap_open: int,
    gap_extend: int,
    frame_shift: int,
    threads: int,
    /,
) -> tuple[bytes, bytes, bytes]: ...
def shifted_memory(codons: int, residues: int, /) -> int: ...
def read_ranges(
    file: int,
    at: int,
    n_bytes: int,
    piece_bytes: int,
    checksums: npt.NDArray[np.uint32],
    begins: IntArray,
    offsets: IntArray,
    step: int,
    threads: int,
    values: ByteArray,
    /,
) -> tuple[list[int], int, int, int]: ...
def copy_ranges(
    source: npt.NDArray[Any], begins: IntArray, target: npt.NDArray[Any], to: IntArray, lengths: IntArray, /
) -> None: ...
def trim_ends(
    common: RunArguments,
    scores: ScoreBytes,
    costs: GapCosts,
    subjects: ByteArray,
    min_score: int,
    numbers: IntArray,
    offsets: IntArray,
    lengths: IntArray,
    operations: ByteArray,
    /,
) -> None: ...
def select_hits(
    common: RunArguments,
    query: ByteArray,
    subjects: ByteArray,
    kinds: ByteArray,
    min_pairs: int,
    min_percent: float,
    low_complexity: float,
    coiled_coil: float,
    flags: npt.NDArray[np.bool_],
    /,
) -> None: ...
def lay_out(
    common: RunArguments,
    residues: ByteArray,
    query_length: int,
    columns: ByteArray,
    spans: IntArray,
    insertions: IntArray,
    inserted: ByteArray,
    /,
) -> None: ...
def observe(
    columns: ByteArray,
    n_rows: int,
    table: ByteArray,
    background: FloatArray,
    identity: float,
    max_gap_length: int,
    min_columns: int,
    max_columns: int,
    weights: FloatArray,
    observations: FloatArray,
    n_present: IntArray,
    /,
) -> int: ...
def predict_contexts(
    shares: ByteArray,
    weights: npt.NDArray[np.int8],
    bias: npt.NDArray[np.int16],
    frequencies: FloatArray,
    exponentials: FloatArray,
    sums: FloatArray,
    /,
) -> None: ...
def select_diverse(
    columns: ByteArray, n_columns: int, gap: int, levels: FloatArray, most: int, diff: int, entered: ByteArray, /
) -> None: ...
def math(function: int, values: FloatArray, results: FloatArray, /) -> None: ...
def write_table(
    columns: Sequence[tuple[Sequence[str] | IntArray | FloatArray, str]], separator: str, empty: str, /
) -> str: ...
def header_parts(pool: bytes, offsets: IntArray, is_description: bool, /) -> list[str]: ...
@overload
def split_header(header: bytes, is_text: Literal[True], /) -> tuple[str, str]: ...
@overload
def split_header(header: bytes, is_text: Literal[False], /) -> tuple[bytes, bytes]: ...
