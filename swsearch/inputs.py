"""Queries and subjects in all their forms, read as records."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Union

import numpy as np

from swsearch.alphabet import PROTEIN, Alphabet, ByteArray
from swsearch.blocks import MASK_CODE, apply_mask, letters_with_mask, runs_of, tantan_finder
from swsearch.errors import DatabaseError, InputError, OptionError, SequenceError, check_choice, check_flag
from swsearch.options.kinds import QUERY_FORMATS, Mask, QueryFormat
from swsearch.output_files import is_same_file
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.scoring import Matrix, QueryLike, QueryProfile, Scoring
from swsearch.translation import Frame

if TYPE_CHECKING:
    from Bio.Seq import Seq
    from Bio.SeqRecord import SeqRecord

    from swsearch.db import Database, Record
    from swsearch.db.input_stream import ByteSource
    from swsearch.db.python_records import NamedSequence

ResidueLetters = Union[str, bytes, "Seq"]
"""Residue letters."""

SequenceLike = Union["SeqRecord", "Record", "tuple[str, ResidueLetters | SeqRecord]", ResidueLetters]
"""One sequence: a Bio.SeqRecord, an (identifier, sequence) pair or the letters themselves."""

MAX_WORD = 30
"""Letters up to which lower case is more likely the name of a file than a sequence."""

SHOWN_LETTERS = 60
"""Letters that a message repeats."""

FILE_ENDING = re.compile(
    r"\.(h5|json|fasta|fas|fa|faa|fsa|fsta|ffn|fna|frn|mpfa|pep|seq|txt)(\.(gz|xz|bz2|zst))?$", re.IGNORECASE
)
"""Endings of the names of databases and FASTA files."""

ENDING_LETTERS = 12
"""Letters at the end of a name that may match `FILE_ENDING`."""

Sequences = Union[
    str, "os.PathLike[str]", IO[Any], SequenceLike, Mapping[str, "ResidueLetters | SeqRecord"], Iterable[SequenceLike]
]
"""Sequences: a FASTA path (``-`` is stdin), an open FASTA file, one sequence, a mapping of names to sequences, or an
iterable of sequences."""

FileOrDatabase = Union[str, "os.PathLike[str]", "Database"]
"""Subjects that are searched together with others."""

QueriesLike = Sequences | Profile | QueryAlignment | Iterable[SequenceLike | Profile | QueryAlignment]
"""Queries: sequences, profiles, alignments that profiles are made of, or a file of any of these."""


@dataclass(frozen=True)
class Query:
    """An encoded query.

    Parameters
    ----------
    identifier, description : str
        Its header.
    codes : ndarray, shape (n,), uint8
        What is scored, X where it is masked.
    lower : tuple of (int, int)
        Runs of lower case in the input, 0-based and half-open.
    letters : ndarray, shape (n,), uint8, or None
        ASCII letters as alignments show them, masked ones in lower case; None where nothing is masked.
    profile : Profile or None
        What is scored instead of the codes, of the same length.
    frame : Frame or None
        Which frame of a DNA record the codes are (those of one stand together), or which part of a protein.
    """

    identifier: str
    description: str
    codes: ByteArray
    lower: tuple[tuple[int, int], ...] = ()
    letters: ByteArray | None = None
    profile: Profile | None = None
    frame: Frame | None = None

    @property
    def length(self) -> int:
        """Residues that are searched with, or nucleotides of the DNA that they are a frame of."""
        return self.frame.dna_length if self.frame is not None and self.frame.number else len(self.codes)

    @classmethod
    def from_profile(cls, profile: Profile) -> Query:
        """Return a profile as a query."""
        return cls(profile.identifier, profile.description, profile.codes, profile=profile)

    def rows(self, scoring: Scoring) -> QueryProfile:
        """Return the query's scores by position, of its profile or the matrix, and of X where it is masked."""
        if self.profile is None:
            return scoring.rows(self.codes)
        masked = self.codes != self.profile.codes  # and where a position was X before
        if self.letters is not None:
            masked |= (self.codes == MASK_CODE) & (self.letters > ord("Z"))
        return self.profile.rows(scoring, masked)

    def alignment_input(self, scoring: Scoring) -> QueryLike:
        """Return the codes, or the profile's scores by position."""
        return self.codes if self.profile is None else self.rows(scoring)

    def with_mask(self, mask: Mask) -> Query:
        """Return the query with X where a mask covers it."""
        runs = tantan_finder()(self.codes) if mask == "tantan" else list(self.lower) if mask == "lower" else []
        if not runs:
            return self
        letters = letters_with_mask(self.codes, runs)
        return replace(self, codes=apply_mask(self.codes, runs), letters=letters)


def read_queries(
    queries: QueriesLike,
    alphabet: Alphabet = PROTEIN,
    what: str = "query",
    argument: str = "",
    *,
    allow_dna: bool = False,
    scoring: Scoring | None = None,
    query_format: QueryFormat = "auto",
    remedy: str = "translate it first",
) -> list[Query]:
    """Read sequences, and profiles where they may be, from whatever stands for them.

    Parameters
    ----------
    queries : path, open file, str, Bio.SeqRecord, (id, sequence), mapping or an iterable of sequences
        A string is a path if such a file exists, if it is ``-`` (stdin), or if it holds a dot or a slash; it is FASTA
        itself if it begins with ``>``; otherwise it is a sequence, as are bytes and a ``Bio.Seq``. A string of up to
        30 letters, half of them or more in lower case, is a mistyped name; in a list, strings are never names. A
        mapping is names to sequences. An open file, in text or binary mode, holds FASTA. With ``scoring``, files may
        hold profiles or alignments as well, and profiles and alignments may stand alone or among sequences.
    what : str, optional
        Named in error messages and in the identifiers of nameless sequences.
    argument : str, optional
        What messages call the whole; ``what`` by default.
    allow_dna : bool, optional
        Accept sequences that look like DNA as protein.
    scoring : Scoring, optional
        That of the search that profiles are for; without it they are refused.
    query_format : str, optional
        What a file holds, one of `swsearch.profiles.formats.QUERY_FORMATS`; by default what its content says.
    remedy : str, optional
        What messages say is to be done about queries that are DNA.
    """
    from swsearch.db import Record
    from swsearch.db.python_records import split_record

    if isinstance(queries, (Profile, QueryAlignment)):
        queries = [queries]
    check_sequences(queries, argument or what)
    check_flag("allow_dna", allow_dna)
    path = input_path(queries)
    queries_read: list[Query] = []
    for number, one in enumerate(_items(queries, path, alphabet, what, query_format, scoring), 1):
        item = _with_given_name(one)
        if _is_file_name(item):
            remedy = "search one file at a time, or combine the files"
            raise InputError(f"{what} {number}: got {item!r}, expected residue letters; {remedy}")
        if isinstance(item, Record):
            queries_read.append(Query(item.identifier, item.description, item.codes, tuple(item.masked)))
        elif isinstance(item, (Profile, QueryAlignment)):
            queries_read.append(_profile_query(item, f"{argument or what} {number}", scoring))
        else:
            queries_read.append(
                _encode(split_record(item, number, what, what), alphabet, what, isinstance(queries, str))
            )
    if not queries_read:
        raise InputError(f"no {what} sequences were given, expected at least one")
    from swsearch.db.fasta import check_no_dna

    if alphabet is PROTEIN and not allow_dna:
        as_dna = "align it with --alphabet dna (in Python scoring=Scoring(dna_matrix(), 10, 1))"
        source = "<stdin>" if path == "-" else path or what
        codes = np.concatenate([query.codes for query in queries_read])
        check_no_dna(source, queries_read[0].identifier, codes, remedy if what == "query" else as_dna)
    return queries_read


def _items(
    queries: Any, path: str, alphabet: Alphabet, what: str, query_format: QueryFormat, scoring: Scoring | None
) -> Iterator[Any]:
    """Yield queries one by one, as records, profiles or the caller's objects."""
    from swsearch.db.input_stream import Input
    from swsearch.db.python_records import is_fasta_text, is_open_file, iter_sequences, open_given

    if path:
        with Input(path) as source:
            yield from _read(source, alphabet, query_format, scoring)
    elif is_open_file(queries) or is_fasta_text(queries):
        yield from _read(open_given(queries), alphabet, query_format, scoring)
    else:
        if not isinstance(query_format, str) or query_format not in ("auto", "fasta"):
            check_choice("query_format", query_format, QUERY_FORMATS)
            raise OptionError("query_format", query_format, "auto for queries that are not in a file")
        if isinstance(queries, str):
            _check_letters(queries, what)
        yield from iter_sequences(queries)


def _read(
    source: ByteSource, alphabet: Alphabet, query_format: QueryFormat, scoring: Scoring | None
) -> Iterator[Record | Profile]:
    """Yield the records of FASTA, or the profiles of whatever else a file may hold where profiles may be."""
    from swsearch.db.records import records_of

    if scoring is None:
        yield from records_of(source, alphabet)
        return
    from swsearch.profiles.formats import detect_format

    format_ = detect_format(source, query_format)
    if format_ != "fasta":
        from swsearch.profiles.readers import profiles_of

        yield from profiles_of(source, format_, scoring)
        return
    try:
        yield from records_of(source, alphabet)
    except SequenceError as error:
        if "is a gap character" not in error.problem or query_format == "fasta":
            raise
        remedy = "; or, if this is an alignment, name it: --query-format fasta-aligned or a3m"
        raise SequenceError(error.source, error.problem + remedy, error.record, error.line) from None


def _with_given_name(item: Any) -> Any:
    """Return the profile of a pair of a name and a profile, by that name; all else as it is."""
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], Profile):
        return replace(item[1], identifier=item[0])
    return item


def _profile_query(source: Profile | QueryAlignment, place: str, scoring: Scoring | None) -> Query:
    """Return a profile, or the one that is made of an alignment, as a query."""
    if scoring is None:
        kind = type(source).__name__
        raise InputError(f"{place}: got a {kind}, expected a sequence; only queries may be profiles")
    if isinstance(source, QueryAlignment):
        from swsearch.profiles.construction import build_profile

        source = build_profile(source, scoring)
    return Query.from_profile(source)


def apply_profile_scoring(queries: Sequence[Query], scoring: Scoring, has_explicit_scoring: bool) -> Scoring:
    """Return the scoring of a search, with the matrix and gap costs that its profiles share.

    Those that the user gave stay.
    """
    from swsearch.matrices import GAP_COSTS
    from swsearch.profiles.calibration import profile_matrix

    used: dict[str, tuple[str, Matrix, tuple[int, int]]] = {}
    """Matrix and costs with the first query of each, by their names."""
    for query in queries:
        matrix, costs = scoring.matrix, (scoring.gap_open, scoring.gap_extend)
        if query.profile is not None:
            matrix = profile_matrix(query.profile, scoring, has_explicit_scoring)
            if query.profile.gap_open is not None and query.profile.gap_extend is not None:
                costs = query.profile.gap_open, query.profile.gap_extend
            elif matrix is scoring.matrix:
                continue  # any will do
            else:
                costs = GAP_COSTS[matrix.name]
        used.setdefault(f"{matrix.name} {costs[0]}/{costs[1]}", (query.identifier, matrix, costs))
    if has_explicit_scoring or not used:
        return scoring
    if len(used) > 1:
        (a, (first, *_)), (b, (second, *_)) = list(used.items())[:2]
        raise InputError(
            f"queries: got {a} from {first} and {b} from {second}, expected one matrix and equal gap costs in one "
            "search; set them with --matrix, --gap-open and --gap-extend (in Python scoring=)"
        )
    ((_, matrix, costs),) = used.values()
    is_same = matrix is scoring.matrix and costs == (scoring.gap_open, scoring.gap_extend)
    return scoring if is_same else Scoring(matrix, *costs)


def read_pair(
    a: Any, b: Any, scoring: Scoring, has_explicit_scoring: bool, allow_dna: bool
) -> tuple[Query, Query, Scoring]:
    """Read one query and one subject; return them, and the scoring with a profile's gap costs unless it is named."""
    alphabet, kinds = scoring.matrix.alphabet, (Profile, QueryAlignment)
    if isinstance(b, kinds):
        raise InputError(f"b: got a {type(b).__name__}, expected a sequence; give the profile as a")
    if isinstance(a, kinds) and alphabet is not PROTEIN:
        raise InputError(
            f"a: got a {type(a).__name__} with matrix {scoring.matrix.name} for {alphabet.name}, expected a matrix "
            "for protein; leave out scoring, or choose one for protein"
        )
    profiles = scoring if alphabet is PROTEIN else None
    pair = []
    for name, sequence, profile_scoring in (("a", a, profiles), ("b", b, None)):
        items = read_queries(sequence, alphabet, what=name, allow_dna=allow_dna, scoring=profile_scoring)
        if len(items) != 1:
            raise InputError(f"{name}: got {len(items)} sequences, expected one")
        pair.append(items[0])
    return pair[0], pair[1], apply_profile_scoring(pair[:1], scoring, has_explicit_scoring)


def check_sequences(value: Any, argument: str) -> None:
    """Raise `swsearch.errors.OptionError` if an argument cannot stand for sequences, as far as its kind says."""
    from swsearch.db import python_records

    if not isinstance(value, (str, os.PathLike)):
        python_records.check_sequences(value, argument)


def _encode(one: NamedSequence, alphabet: Alphabet, what: str, is_word: bool) -> Query:
    """Encode a sequence; one that came as a word alone may have been meant to name a file."""
    try:
        codes = alphabet.encode(one.letters, source=what, record=one.identifier)
    except SequenceError as error:
        if not is_word:
            raise
        problem = f"{error.problem}; no file has this name either"
        raise SequenceError(what, problem, one.identifier, error.line) from None
    return Query(one.identifier, one.description, codes, _lower_case_runs(one.letters))


def _check_letters(text: str, what: str) -> None:
    """Raise if a string that is no path is empty, or more likely the mistyped name of a file than letters."""
    if not text.strip():
        raise SequenceError(what, "the text is empty, expected the name of a FASTA file, - for stdin, or letters")
    if _like_a_name(text):
        beginning = text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}..."
        remedy = "check the name, or give letters in upper case"
        if what not in ("A", "B"):  # the words of the command line, which has no lists
            remedy += f", or in a list, [{beginning!r}]"
        raise SequenceError(what, f"file {beginning!r} not found; {remedy}")


def _like_a_name(text: str) -> bool:
    """Return whether the lower case of a text suggests a file name rather than a masked sequence."""
    lower = sum(character.islower() for character in text)
    if re.fullmatch(r"[A-Za-z*\s]+", text):
        return len(text) <= MAX_WORD and 2 * lower >= len(text)
    return lower > 0


def input_path(sequences: Any) -> str:
    """Return the path that sequences are read from, as `read_queries` understands it; empty where it is none."""
    is_path = isinstance(sequences, (str, os.PathLike)) and _is_path(sequences)
    return os.fsdecode(sequences) if is_path else ""


def check_distinct_inputs(first: str, second: str, names: tuple[str, str]) -> None:
    """Raise if one of two inputs, each a path or not, is empty, or both are a stream, which can be read only once."""
    from swsearch.db.input_stream import stream_identity

    for path, name in zip((first, second), names, strict=True):
        if not path.strip():
            raise InputError(f"{name}: the name is empty, expected a file, or - for stdin")
    if first == second == "-" or stream_identity(first) == stream_identity(second) != (0, 0):
        stream = "stdin" if "-" in (first, second) else f"{first}, which can be read once"
        raise InputError(f"{' and '.join(names)} cannot both come from {stream}; give one of them as a file")


def check_subject_inputs(queries: str, subjects: Sequence[str]) -> None:
    """Raise if queries are a database, an input's name is empty, or a stream or subject file is given twice."""
    from swsearch.db.input_stream import stream_identity

    for number, each in enumerate(subjects):
        check_distinct_inputs(queries, each, ("queries", "subjects"))
        for other in subjects[:number]:
            if other == each == "-" or stream_identity(other) == stream_identity(each) != (0, 0):
                stream = "stdin" if "-" in (other, each) else other
                message = f"{stream} is given twice but can be read only once; give one of them as a file"
                raise InputError(f"subjects: {message}")
            if other == each or is_same_file(other, each):
                names = each if other == each else f"{other} and {each} are the same file, which"
                raise DatabaseError(f"{names} is given twice; name each file once")
    check_not_swapped(Path(queries), [Path(each) for each in subjects])


def _is_stream(path: str) -> bool:
    """Return whether a path can be read only once: a pipe, a socket or a terminal."""
    try:
        kind = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISBLK(kind))


def _lower_case_runs(letters: bytes) -> tuple[tuple[int, int], ...]:
    """Return the runs of lower case; blanks and line ends do not count."""
    compact = b"".join(letters.split())
    if compact.isupper():
        return ()
    return tuple(runs_of(np.frombuffer(compact, dtype=np.uint8) > ord("Z")))


def _is_path(text: str | os.PathLike[str]) -> bool:
    if not isinstance(text, str):
        return True
    if text.startswith(">"):
        return False
    if text == "-" or any(c in text for c in "./\\"):
        return True
    if not text or _is_there(text):
        return bool(text)
    from swsearch.db.foreign_formats import foreign_database

    return bool(foreign_database(text))  # BLAST's NAME.pin and others go by NAME, which is no file


def _is_there(name: str) -> bool:
    try:
        return os.path.lexists(name)  # a link that leads nowhere is the name of a file too
    except (OSError, ValueError):  # letters may be more than a name can have
        return False


def _is_file_name(text: Any) -> bool:
    """Return whether a string can only be a file name: a sequence has no slash and no such ending."""
    if not isinstance(text, str) or text.startswith(">"):
        return False
    end = text[-ENDING_LETTERS:]
    return "/" in text or "\\" in text or ("." in end and FILE_ENDING.search(end) is not None)


def check_subjects(subjects: Any) -> None:
    """Raise if an argument cannot stand for subjects, or is a database that was closed; opens nothing."""
    from swsearch.db import Database

    for each in _listed_subjects(subjects) or [subjects]:
        if isinstance(each, Database):
            each.check_open()
        elif not isinstance(each, os.PathLike):
            check_sequences(each, "subjects")


def _listed_subjects(subjects: Any) -> list[FileOrDatabase]:
    """Return the files and databases of a list of such, which are to be searched together; none of any other list.

    Strings of a list are file names where all are those of files, or one of them can be nothing else.
    """
    from swsearch.db import Database
    from swsearch.db.python_records import is_single

    if not isinstance(subjects, (list, tuple)) or (is_single(subjects) and not _is_file_name(subjects[1])):
        return []
    texts = [each for each in subjects if isinstance(each, str)]
    has_names = any(map(_is_file_name, texts)) or all(map(_is_there, texts))

    def is_chosen(each: Any) -> bool:
        return isinstance(each, (os.PathLike, Database)) or (has_names and isinstance(each, str) and _is_path(each))

    chosen = [each for each in subjects if is_chosen(each)]
    if chosen and len(chosen) < len(subjects):
        other = next(each for each in subjects if not is_chosen(each))
        expected = "only files and databases, or only sequences"
        remedy = "check the name, or make a database of sequences with Database.from_records"
        raise OptionError("subjects", other, expected, remedy)
    return chosen


def check_not_swapped(queries: Any, subjects: Any) -> None:
    """Raise `InputError` if the queries are a database and the subjects are none."""
    from swsearch.db import Database, is_database

    path, is_open = input_path(queries), isinstance(queries, Database)
    if not is_open and (path in ("", "-") or _is_stream(path) or not is_database(path)):
        return
    inputs = _listed_subjects(subjects) or [subjects]
    names = [input_path(each) for each in inputs]
    if any(isinstance(each, Database) for each in inputs) or any(map(_names_a_database, names)):
        return
    name = queries.name if is_open else path
    remedy = f"give {' '.join(names) or 'the queries'} first and {name} second"
    remedy += ", or list(database) as queries" if is_open else ""
    raise InputError(
        f"queries: got the database {name}, expected sequences; queries and subjects are swapped: {remedy}"
    )


def open_subjects(
    subjects: Any, mask: str = "database", allow_dna: bool = False, alphabet: Alphabet = PROTEIN
) -> Database:
    """Open whatever stands for subjects.

    Parameters
    ----------
    subjects : Database, list of Database and paths, or as for `read_queries`
        A path may name a database, a manifest of volumes or a FASTA file, which is then built in memory, as all else
        is. Several in a list are one database, in their order; their name is theirs, joined by commas.
    mask : {"database", "none", "lower", "tantan"}
        What is in force where the database is made here; one that is built already has its own, and FASTA files
        beside it in a list are given the same by default.
    allow_dna : bool, optional
        Accept subjects that look like DNA as protein, where the database is made here.
    alphabet : Alphabet, optional
        That of the queries, where the database is made here; see `check_alphabet`.

    Returns
    -------
    Database
        ``subjects`` itself if it is one; otherwise the caller's to close.
    """
    from swsearch.db import Database
    from swsearch.db.python_records import is_fasta_text, is_open_file, is_single, open_given

    check_subjects(subjects)
    if isinstance(subjects, Database):
        return subjects
    own: Mask = "tantan" if mask == "tantan" else "lower" if mask == "lower" else "none"
    made: Any = {"allow_dna": allow_dna, "alphabet": alphabet.name}
    try:
        if several := _listed_subjects(subjects):
            return _open_together(several, None if mask == "database" else own, made)
        if path := input_path(subjects):
            if _names_a_database(path):
                return Database.open(path)
            return Database.from_fasta([path], mask=own, **made)
        if is_open_file(subjects) or is_fasta_text(subjects):
            handle = open_given(subjects)
            return Database.from_records(handle, name=handle.name, mask=own, **made)
        if isinstance(subjects, str):
            _check_letters(subjects, "subject")
        records = [subjects] if is_single(subjects) else subjects
        return Database.from_records(records, mask=own, **made)
    except SequenceError as error:
        raise DatabaseError(str(error)) from error


def check_alphabet(database: Database, alphabet: Alphabet) -> None:
    """Raise `InputError` if the letters of a database are not of the alphabet of the queries."""
    if database.alphabet != alphabet.name:
        have, remedy = database.alphabet, f"search it with --alphabet {database.alphabet}"
        if have == "protein":
            remedy = f"build it with swsearch db build --alphabet {alphabet.name} if its letters are these"
        raise InputError(f"alphabet: got {alphabet.name}, expected {have}, as {database.name} was built; {remedy}")


def _names_a_database(path: str) -> bool:
    """Return whether a path is a database, not FASTA."""
    from swsearch.db import is_database

    # a pipe is opened once, when it is read: what was looked at before would be lost
    return path != "-" and not _is_stream(path) and (is_database(path) or Path(path).suffix == ".h5")


def _open_together(several: Sequence[FileOrDatabase], mask: Mask | None, made: Mapping[str, Any]) -> Database:
    """Open databases and FASTA files as one; without a mask FASTA files are given that of the databases."""
    from swsearch.db import Database
    from swsearch.db.building import check_inputs

    def is_file_of_one(each: FileOrDatabase) -> bool | None:
        return None if isinstance(each, Database) else _names_a_database(os.fsdecode(each))

    with ExitStack() as opened:
        groups: list[Database | list[str]] = []
        for is_database, neighbours in groupby(several, is_file_of_one):  # of one kind: they are made together
            some = list(neighbours)
            names = [os.fsdecode(each) for each in some if not isinstance(each, Database)]
            if is_database is None:
                groups += [each for each in some if isinstance(each, Database)]
            else:
                groups.append(opened.enter_context(Database.open(names)) if is_database else names)
        if fasta := [name for each in groups if isinstance(each, list) for name in each]:
            check_inputs(fasta)  # standard input and each pipe once
        database_mask = next((each.mask for each in groups if isinstance(each, Database)), None)
        own: Mask = mask or database_mask or "none"
        databases = [
            opened.enter_context(Database.from_fasta(each, mask=own, **made)) if isinstance(each, list) else each
            for each in groups
        ]
        return Database.concatenate(databases)
