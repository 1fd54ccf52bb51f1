"""A thin layer over the C library that the ``parasail`` package brings.

The package's Python functions cost 3 to 5 microseconds a call in result objects and string conversions, a
third of the work for a query of 144 residues; the C functions called straight through ctypes cost 1.5, and the
short ones do not even give up the interpreter lock. Only functions and structures of the public header
(parasail.h, version 2) are used. Its CIGAR and gap conventions are translated here and nowhere else.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache

import numpy as np
import parasail

from swsearch.alphabet import N_CODES, ByteArray
from swsearch.errors import EngineError
from swsearch.scoring import Mode, Profile, Scoring

_PREFIX: dict[Mode, str] = {"local": "sw", "global": "nw", "semiglobal": "sg"}
"""parasail's names of the modes; sg frees all four ends."""

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456"
"""32 distinct letters: parasail wants some, although it is given codes."""

_SATURATED = 1 << 6
"""Bit of a result's flag that says a lane was too narrow (PARASAIL_FLAG_SATURATED)."""

_CIGAR_OPS = "MIDNSHP=XB"
"""Operation by the low four bits of a CIGAR word; the run length stands above them."""

assert len(_ALPHABET) == N_CODES


class _Result(ctypes.Structure):
    """parasail_result_t without what is not read."""

    _fields_ = (
        ("score", ctypes.c_int),
        ("end_query", ctypes.c_int),
        ("end_ref", ctypes.c_int),
        ("flag", ctypes.c_int),
    )


class _Matrix(ctypes.Structure):
    """parasail_matrix_t up to its mapper."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("matrix", ctypes.POINTER(ctypes.c_int)),
        ("mapper", ctypes.POINTER(ctypes.c_int)),
    )


class _Cigar(ctypes.Structure):
    """parasail_cigar_t."""

    _fields_ = (
        ("seq", ctypes.POINTER(ctypes.c_uint32)),
        ("len", ctypes.c_int),
        ("beg_query", ctypes.c_int),
        ("beg_ref", ctypes.c_int),
    )


class _Library:
    """The C functions with their types.

    Functions that only read or free are called through PyDLL: they take less time than giving up and taking
    back the interpreter lock.
    """

    def __init__(self) -> None:
        path = parasail._libpath
        self._long, self._short = ctypes.CDLL(path), ctypes.PyDLL(path)
        pointer, integer = ctypes.c_void_p, ctypes.c_int
        self.pssm = self._declare(
            self._short, "parasail_matrix_pssm_create", pointer, ctypes.c_char_p, pointer, integer
        )
        self.free_matrix = self._declare(self._short, "parasail_matrix_free", None, pointer)
        self.free_profile = self._declare(self._short, "parasail_profile_free", None, pointer)
        self.free_result = self._declare(self._short, "parasail_result_free", None, pointer)
        self.free_cigar = self._declare(self._short, "parasail_cigar_free", None, pointer)
        self.cigar = self._declare(
            self._short, "parasail_result_get_cigar", ctypes.POINTER(_Cigar),
            pointer, pointer, integer, pointer, integer, pointer,
        )  # fmt: skip

    @staticmethod
    def _declare(library: ctypes.CDLL, name: str, result: object, *arguments: object) -> ctypes._NamedFuncPointer:
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(arguments)
        return function  # type: ignore[no-any-return]

    @cache  # noqa: B019  # one library a process
    def create_profile(self, bits: int) -> ctypes._NamedFuncPointer:
        """(query codes or NULL, length, matrix) -> profile."""
        name = f"parasail_profile_create_{bits}"
        return self._declare(self._short, name, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)

    @cache  # noqa: B019
    def scorer(self, mode: Mode, bits: int, layout: str) -> ctypes._NamedFuncPointer:
        """(profile, subject codes, length, first gap residue, next ones) -> result."""
        name = f"parasail_{_PREFIX[mode]}_{layout}_profile_{bits}"
        integer = ctypes.c_int
        return self._declare(
            self._long, name, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, integer, integer, integer
        )

    @cache  # noqa: B019
    def tracer(self, mode: Mode, bits: int) -> ctypes._NamedFuncPointer:
        """(query, length, subject, length, first gap residue, next ones, matrix) -> result with directions."""
        name = f"parasail_{_PREFIX[mode]}_trace_scan_{bits}"
        integer, pointer = ctypes.c_int, ctypes.c_void_p
        return self._declare(self._long, name, pointer, pointer, integer, pointer, integer, integer, integer, pointer)


@lru_cache(maxsize=1)
def library() -> _Library:
    """Load the C library once."""
    return _Library()


def version() -> str:
    """Return the C library's version, such as ``2.6.2``."""
    library_ = ctypes.CDLL(parasail._libpath)
    parts = [ctypes.c_int() for _ in range(3)]
    library_.parasail_version(*(ctypes.byref(part) for part in parts))
    return ".".join(str(part.value) for part in parts)


def instruction_set() -> str:
    """Return the widest vector instructions that the library uses on this machine."""
    for name in ("avx2", "sse41", "sse2", "neon", "altivec"):
        if getattr(parasail, f"can_use_{name}")():
            return name.upper()
    return "scalar"


class _PositionMatrix:
    """A profile as parasail's position-specific matrix, which takes codes instead of letters."""

    def __init__(self, profile: Profile) -> None:
        letters = profile.scores.astype(np.int32)
        used = letters[:, :-1]
        # parasail derives its saturation limits from the smallest entry, so padding's -128 must not be seen
        floor = int(used[used > -128].min()) if (used > -128).any() else -1
        self._values = np.maximum(letters, floor)
        self.pointer = library().pssm(_ALPHABET, self._values.ctypes.data, len(profile))
        if not self.pointer:
            raise MemoryError("parasail could not make a profile")
        mapper = ctypes.cast(self.pointer, ctypes.POINTER(_Matrix)).contents.mapper
        for code in range(N_CODES):
            mapper[code] = code

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            library().free_matrix(self.pointer)


class ScoreProfile:
    """A query in parasail's striped layout, for one mode and lane width.

    Parameters
    ----------
    profile : Profile
        Not empty.
    scoring : Scoring
        Gap costs.
    mode : {"local", "global", "semiglobal"}
        Which ends are free.
    bits : int
        Lane width.
    """

    def __init__(self, profile: Profile, scoring: Scoring, mode: Mode, bits: int) -> None:
        self._matrix = _PositionMatrix(profile)
        self._codes = profile.codes
        self._gaps = (scoring.gap_first, scoring.gap_extend)
        self._floor = 0 if mode != "global" else None
        # the striped kernels' lazy F loop stops too early when opening a gap costs no more than extending it
        # (scores come out too low); the scan kernels are slower and right
        self._scorer = library().scorer(mode, bits, "striped" if scoring.gap_open > 0 else "scan")
        create = library().create_profile(bits)
        self._pointer = create(self._codes.ctypes.data, len(profile), self._matrix.pointer)
        if not self._pointer:
            raise MemoryError("parasail could not make a profile")

    def score(self, addresses: list[int], lengths: list[int]) -> tuple[list[int], list[bool]]:
        """Score subjects given by the address of their codes; none may be empty.

        Returns
        -------
        scores : list of int
            Matrix units; meaningless where saturated.
        saturated : list of bool
        """
        scorer, free, read = self._scorer, library().free_result, _Result.from_address
        pointer, (first, extend) = self._pointer, self._gaps
        scores: list[int] = []
        saturated: list[bool] = []
        for address, length in zip(addresses, lengths, strict=True):
            result = scorer(pointer, address, length, first, extend)
            if not result:
                raise MemoryError("parasail could not allocate a result")
            fields = read(result)
            scores.append(fields.score)
            saturated.append(fields.flag & _SATURATED != 0)
            free(result)
        if self._floor is not None:
            # an empty alignment scores 0, which parasail's sg leaves out and its 8-bit sw reports as -128
            scores = [score if score > 0 else 0 for score in scores]
        return scores, saturated

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            library().free_profile(self._pointer)


def trace(
    profile: Profile, subject: ByteArray, scoring: Scoring, mode: Mode, bits: int
) -> tuple[int, int, int, list[tuple[int, str]]] | None:
    """Align a pair with the whole direction table in memory (bits / 8 bytes a cell).

    Parameters
    ----------
    profile : Profile
        Of the query; not empty.
    subject : ndarray, shape (n,), uint8
        Codes, C-contiguous; not empty.
    scoring, mode, bits
        As for `ScoreProfile`; 16 or 32 bits.

    Returns
    -------
    score, query_end, subject_end : int
        Matrix units, and the cell where the alignment ends (residues used).
    runs : list of (int, str)
        ``M``, ``I`` and ``D`` over the whole of both sequences up to that cell, free ends included.
    None
        If the lane saturated.
    """
    lib = library()
    matrix = _PositionMatrix(profile)
    query, m, n = profile.codes, len(profile), len(subject)
    result = lib.tracer(mode, bits)(
        query.ctypes.data, m, subject.ctypes.data, n, scoring.gap_first, scoring.gap_extend, matrix.pointer
    )
    if not result:
        raise EngineError(f"parasail could not align {m} x {n} residues")
    try:
        fields = _Result.from_address(result)
        if fields.flag & _SATURATED:
            return None
        cigar = lib.cigar(result, query.ctypes.data, m, subject.ctypes.data, n, matrix.pointer)
        try:
            words = [cigar.contents.seq[k] for k in range(cigar.contents.len)]
        finally:
            lib.free_cigar(cigar)
        return fields.score, fields.end_query + 1, fields.end_ref + 1, _merge_runs(words)
    finally:
        lib.free_result(result)


def _merge_runs(words: list[int]) -> list[tuple[int, str]]:
    """Decode CIGAR words, taking matches and mismatches together as ``M``."""
    runs: list[tuple[int, str]] = []
    for word in words:
        op = _CIGAR_OPS[word & 15].replace("=", "M").replace("X", "M")
        length = word >> 4
        if runs and runs[-1][1] == op:
            runs[-1] = (runs[-1][0] + length, op)
        else:
            runs.append((length, op))
    return runs
