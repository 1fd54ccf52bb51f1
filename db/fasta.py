"""FASTA parser: large buffers, taken apart with numpy.

No Python code runs per line or per record. A record is a header line, which begins with ``>``, and the lines up to
the next one. Lines end in LF, CRLF or CR; blanks inside and between lines are skipped; a record without residues is
valid.

The module also refuses DNA where protein is expected. A third of a protein's letters (E, F, I, L, P, Q) stand for no
base. So by chance 20 letters of a protein are all bases less often than once in 10^10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from swsearch.alphabet import BLANK, ILLEGAL, PROTEIN, Alphabet, ByteArray
from swsearch.blocks import IntArray
from swsearch.db.foreign_formats import foreign_text
from swsearch.db.input_stream import ByteSource
from swsearch.errors import OptionError, SequenceError, check_integer
from swsearch.extension import load

BUFFER_BYTES = 1 << 23
"""Bytes of text taken apart at once. Any size from 4 to 16 MiB costs the same per byte (Swiss-Prot, 2 cores)."""

FIRST_BUFFER_BYTES = 1 << 16
"""Bytes of text taken apart at first: most queries are no more, and memory that is not used costs time too."""

MAX_BUFFER_BYTES = 1 << 30
"""Largest buffer that can be asked for."""

HEADER_LIMIT = 1 << 26
"""Longest header line; a longer one is no FASTA, and must be in memory whole."""

ReadProgress = Callable[[int, "int | None"], None]

_LF, _CR, _SPACE, _GT = 10, 13, 32, ord(">")


def split_header(header: bytes) -> tuple[bytes, bytes]:
    """Split a header line into identifier and description.

    The identifier is the first word; a control-A, which in NCBI's merged headers stands between the headers
    of identical sequences, ends it too. The description is all of the rest, control-As included.
    """
    parts: tuple[bytes, bytes] = load().split_header(header, False)
    return parts


def header_encoding(header: bytes) -> str:
    """Return ``utf-8`` where a header is valid UTF-8, else ``latin-1``, which every header is."""
    try:
        header.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def header_text(header: bytes) -> tuple[str, str]:
    """Decode identifier and description."""
    parts: tuple[str, str] = load().split_header(header, True)
    return parts


FastaFault = tuple[int, str, "bytes | None"]
"""Something in a buffer that is no FASTA: where, what, and in which record."""


@dataclass(frozen=True)
class RecordBatch:
    """Records of one buffer of FASTA."""

    codes: ByteArray
    """Residues of all records, shape (n_residues,), uint8; those before ``starts[0]`` belong to the last record of
    the batch before.
    """
    starts: IntArray
    """Start in ``codes`` of each record whose header is in this batch, shape (n_records,), int64."""
    headers: bytes
    """Header lines without ``>``, one after the other."""
    header_lengths: IntArray
    """Bytes of each header, shape (n_records,), int64."""
    mask_starts: IntArray
    mask_ends: IntArray
    """Runs of lower case in ``codes`` from ``mask_starts``, shape (n_runs,), int64, half-open, none across a
    record's start.
    """


def lower_case(letters: ByteArray, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Find the runs of lower case among ASCII letters, shape (n,), uint8: starts and ends, shape (n_runs,), int64.

    A run ends at each of ``starts``, shape (n_records,), int64, where a record begins. Runs are half-open and
    ascending.
    """
    n = len(letters)
    lower = letters > ord("Z")
    change = np.ones(n, dtype=bool)
    np.not_equal(lower[1:], lower[:-1], out=change[1:])
    change[starts[starts < n]] = True
    at = np.flatnonzero(change)
    chosen = lower[at]
    return at[chosen], np.append(at[1:], n)[chosen]


class FastaReader:
    """Iterable of the batches of an open input, which the caller closes; results do not depend on ``buffer_bytes``.

    An error names the source, the record, the line and the byte.
    """

    def __init__(self, source: ByteSource, alphabet: Alphabet = PROTEIN, buffer_bytes: int = BUFFER_BYTES) -> None:
        if not isinstance(alphabet, Alphabet):
            raise OptionError("alphabet", alphabet, "swsearch.alphabet.PROTEIN or DNA")
        self._source = source
        self._alphabet = alphabet
        self._table = alphabet.encode_table.tobytes()
        self._blanks = np.flatnonzero(alphabet.encode_table == BLANK).astype(np.uint8).tobytes()
        # _parse finds blanks and line ends in one comparison with the space
        assert max(self._blanks) == _SPACE and set(self._blanks) > {_LF, _CR}
        self._most = max(check_integer("buffer_bytes", buffer_bytes, 1, MAX_BUFFER_BYTES), 16)
        self._buffer = bytearray(min(self._most, FIRST_BUFFER_BYTES))
        self._lines = 0  # line ends before the buffer
        self._line_bytes = 0  # bytes between the last of them and the buffer
        self._previous = _LF  # the byte before the buffer
        self._current: bytes | None = None  # header of the record that is open; None before the first

    def __iter__(self) -> Iterator[RecordBatch]:
        have = self._source.read_into(memoryview(self._buffer)[:3])
        if self._buffer[:have] == b"\xef\xbb\xbf":  # UTF-8 byte order mark
            have = 0
        final = False
        while not final:
            have += self._source.read_into(memoryview(self._buffer)[have:])
            final = have < len(self._buffer)
            used, batch = self._parse(np.frombuffer(self._buffer, dtype=np.uint8)[:have], final)
            if len(batch.codes) or len(batch.starts):
                yield batch
            have -= used
            self._buffer[:have] = self._buffer[used : used + have]
            if have == len(self._buffer) >= HEADER_LIMIT:
                problem = f"header line longer than {HEADER_LIMIT >> 20} MiB; is this a FASTA file?"
                raise SequenceError(self._source.name, problem, None, self._lines + 1)
            if not final and (have == len(self._buffer) or len(self._buffer) < self._most):
                self._buffer = self._buffer + bytearray(len(self._buffer))
        if self._current is None:
            problem = "no FASTA records; expected a line beginning with '>' and a sequence below it"
            raise SequenceError(self._source.name, problem)

    def _parse(self, data: ByteArray, final: bool) -> tuple[int, RecordBatch]:
        """Parse the buffer; return the bytes used (all but an unfinished header line) and the batch."""
        low = np.flatnonzero(data <= _SPACE)
        low_bytes = data[low]
        ends = low[(low_bytes == _LF) | (low_bytes == _CR)]
        lines = ends + 1
        if self._previous in (_LF, _CR):
            lines = np.insert(lines, 0, 0)
        lines = lines[lines < len(data)]
        first = lines[data[lines] == _GT]
        # a header ends where the next line end stands: lines are in step with ends
        following = np.searchsorted(ends, first)
        if len(first) and following[-1] == len(ends) and not final:
            data, first, following = data[: first[-1]], first[:-1], following[:-1]
            low = low[: np.searchsorted(low, len(data))]
        stop = np.append(ends, len(data))[following]

        headers = self._cut_headers(data, first, stop)
        text = self._buffer if len(data) == len(self._buffer) else data.tobytes()
        codes = np.frombuffer(text.translate(self._table, self._blanks), dtype=np.uint8)
        # residues between one header and the next: what is no blank there
        gap_starts, gap_ends = np.insert(stop, 0, 0), np.append(first, len(data))
        blanks = np.searchsorted(low, gap_ends) - np.searchsorted(low, gap_starts)
        starts = np.cumsum(gap_ends - gap_starts - blanks)[:-1]
        offsets = np.concatenate([[0], np.cumsum(stop - first - 1)])
        faults = self._bad_headers(first, offsets, headers)
        if self._current is None and (starts[0] if len(starts) else len(codes)):
            faults.append(self._text_before(data))
        elif len(codes) and codes.max() == ILLEGAL:
            faults.append(self._illegal_byte(data, first, offsets, headers))
        if faults:
            at, problem, header = min(faults)
            line = self._lines + self._count_lines(data, self._line_ends(data[:at])) + 1
            raise SequenceError(self._source.name, problem, header_text(header)[0] if header else None, line)

        mask = (np.empty(0, np.int64), np.empty(0, np.int64))
        if len(codes) and data.max() > ord("Z"):
            letters = np.frombuffer(text.translate(None, self._blanks), dtype=np.uint8)
            mask = lower_case(letters, starts)
        if len(data):
            inside = ends[: np.searchsorted(ends, len(data))]
            self._lines += self._count_lines(data, inside)
            self._line_bytes = len(data) - 1 - int(inside[-1]) if len(inside) else self._line_bytes + len(data)
            self._previous = int(data[-1])
        if len(first):
            self._current = headers[offsets[-2] :]
        return len(data), RecordBatch(codes, starts, headers, np.diff(offsets), *mask)

    @staticmethod
    def _cut_headers(data: ByteArray, first: IntArray, stop: IntArray) -> bytes:
        """Cut the header lines out: return them without '>' and leave spaces, which are skipped."""
        if not len(first):
            return b""
        data[first] = _SPACE
        bounds = np.empty(2 * len(first) + 2, dtype=np.int64)
        bounds[0], bounds[1:-1:2], bounds[2:-1:2], bounds[-1] = 0, first + 1, stop, len(data)
        inside = np.repeat(np.arange(len(bounds) - 1) % 2 == 1, np.diff(bounds))
        headers: bytes = data[inside].tobytes()
        data[inside] = _SPACE
        return headers

    def _count_lines(self, data: ByteArray, ends: IntArray) -> int:
        """Count the line ends at positions ``ends``; the LF of a CRLF does not count again."""
        if not len(ends):
            return 0
        before = data[ends - 1]
        if ends[0] == 0:
            before[0] = self._previous
        return len(ends) - int(np.count_nonzero((data[ends] == _LF) & (before == _CR)))

    @staticmethod
    def _line_ends(data: ByteArray) -> IntArray:
        return np.flatnonzero((data == _LF) | (data == _CR))

    def _text_before(self, data: ByteArray) -> FastaFault:
        """Make the fault of text that no header line precedes."""
        at = int((self._alphabet.encode_table[data] != BLANK).argmax())
        if what := foreign_text(data[at : at + 64].tobytes()):
            return at, f"not FASTA: this looks like {what}", None
        character = f"{chr(data[at])!r}" if _SPACE < data[at] < 127 else f"byte 0x{data[at]:02X}"
        problem = f"got {character} before the first record, expected a line such as '>name'; is this a FASTA file?"
        return at, problem, None

    def _illegal_byte(self, data: ByteArray, first: IntArray, offsets: IntArray, headers: bytes) -> FastaFault:
        """Make the fault of the first byte that is no residue letter."""
        at = int((self._alphabet.encode_table[data] == ILLEGAL).argmax())
        record = int(np.searchsorted(first, at)) - 1
        header = self._current if record < 0 else headers[offsets[record] : offsets[record + 1]]
        ends = self._line_ends(data[:at])
        column = at - int(ends[-1]) if len(ends) else self._line_bytes + at + 1
        return at, f"{self._alphabet.describe_illegal_byte(int(data[at]))} (column {column})", header

    @staticmethod
    def _bad_headers(first: IntArray, offsets: IntArray, headers: bytes) -> list[FastaFault]:
        """Find the first header with a NUL and the first without an identifier."""
        faults: list[FastaFault] = []
        at = headers.find(b"\0")
        if at >= 0:
            record = int(np.searchsorted(offsets, at, side="right")) - 1
            faults.append((int(first[record]), "NUL byte in a header line; is this a text file?", None))
        # most headers begin with their identifier: only the others are looked at one by one
        beginning = np.frombuffer(headers + b"\0", dtype=np.uint8)[offsets[:-1]]
        doubtful = (offsets[1:] == offsets[:-1]) | (beginning <= _SPACE)
        for record in np.flatnonzero(doubtful).tolist():
            if not split_header(headers[offsets[record] : offsets[record + 1]])[0]:
                problem = "header without an identifier, expected a word after '>'; name the record"
                faults.append((int(first[record]), problem, None))
                break
        return faults


@dataclass(frozen=True, eq=False)
class Record:
    """One FASTA record."""

    header: bytes
    """Header line without ``>``."""
    identifier: str
    description: str
    codes: ByteArray
    """Residue codes of the alphabet, shape (n_residues,), uint8."""
    masked: list[tuple[int, int]]
    """Runs of lower case, 0-based, half-open."""

    def __len__(self) -> int:
        return len(self.codes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record) or type(self) is not type(other):
            return NotImplemented
        same = (self.header, self.masked) == (other.header, other.masked)
        return same and np.array_equal(self.codes, other.codes)

    def __hash__(self) -> int:
        return hash((self.header, len(self)))


FIRST_RESIDUES = 1 << 20
"""Residues of an input that decide."""

ENOUGH_BASES = 20
"""Bases (A, C, G, T, U) from which on letters are taken for DNA."""

BASES_PER_CODE = 9
"""Bases that there must be for each IUPAC code of several bases."""

_BASES, _CODES, _ANY = (
    [PROTEIN.letters.index(letter) for letter in letters] for letters in ("ACGTU", "RYSWKMBDHV", "NX")
)


def _is_dna(codes: ByteArray) -> bool:
    counts = np.bincount(codes, minlength=len(PROTEIN.letters))
    a, c, g, t, u = map(int, counts[_BASES])
    n_bases, n_codes = a + c + g + t + u, int(counts[_CODES].sum())
    only_dna = n_bases + n_codes + int(counts[_ANY].sum()) == len(codes)
    return only_dna and min(a, c, g, t + u) > 0 and n_bases >= max(ENOUGH_BASES, BASES_PER_CODE * n_codes)


def check_no_dna(
    source: str, name: str, codes: ByteArray, remedy: str = "build a DNA database with: swsearch db build --translate"
) -> None:
    """Raise `SequenceError` if an input of residues ``codes``, shape (n,), whose first record is ``name``, is DNA."""
    if _is_dna(codes[:FIRST_RESIDUES]):
        problem = f"holds only letters of DNA, expected protein; {remedy}"
        override = "pass --allow-dna (in Python allow_dna=True) to accept it as protein"
        raise SequenceError(source, f"{problem}, or {override}", name)


def without_dna(source: str, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Yield batches; raise `SequenceError` if the first one is DNA."""
    batches = iter(batches)
    for first in batches:
        check_no_dna(source, header_text(first.headers[: int(first.header_lengths[0])])[0], first.codes)
        yield first
        yield from batches
