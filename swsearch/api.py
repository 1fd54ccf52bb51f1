"""Public functions of swsearch: search, Searcher, score, align, write."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from swsearch.backends.local import LocalBackend
from swsearch.backends.resident import ResidentBackend
from swsearch.blocks import FloatArray
from swsearch.engines.base import Engine, Progress, ScoreArray
from swsearch.engines.devices import Devices
from swsearch.engines.factory import check_engine_option, create_pair_aligner
from swsearch.errors import OptionError, check_choice, check_flag, check_integer
from swsearch.inputs import (
    QueriesLike,
    Sequences,
    apply_profile_scoring,
    check_alphabet,
    check_not_swapped,
    check_subjects,
    input_path,
    open_subjects,
    read_queries,
)
from swsearch.options.kinds import (
    ENGINES,
    MAX_INTEGER,
    Mode,
    PairSelection,
    Preset,
    QueryFormat,
)
from swsearch.output_files import checkpoint_folder
from swsearch.pipeline.options import (
    SearchKeywords,
    make_engine_if_named,
    make_search_options,
    protein_scoring,
    resolve_scoring,
    takes_options,
)
from swsearch.pipeline.pairs import PairwiseJob
from swsearch.pipeline.score_matrix import TopScores, score_all_pairs, top_scores
from swsearch.pipeline.search_queries import search_queries
from swsearch.pipeline.search_results import SearchResults
from swsearch.recurrence import Recurrence
from swsearch.run_info import Origin
from swsearch.scoring import Ends, Scoring

if TYPE_CHECKING:
    from Bio.Align import Alignment

    from swsearch.db import Database
    from swsearch.inputs import Query
    from swsearch.pipeline.backend import Backend
    from swsearch.pipeline.options import SearchOptions
    from swsearch.results import SearchResult


def _check_progress(progress: object) -> None:
    """Raise unless ``progress`` is callable or None."""
    if progress is not None and not callable(progress):
        raise OptionError("progress", progress, "something that can be called with a number of cells")


@takes_options
def search(
    queries: QueriesLike,
    subjects: Any,
    *,
    engine: str | Engine = "auto",
    threads: int | None = None,
    device: Devices | None = None,
    gpu_memory: int | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    query_format: QueryFormat = "auto",
    client: Any = None,
    **options: Unpack[SearchKeywords],
) -> SearchResults:
    """Search a database with every query, exactly.

    Parameters
    ----------
    queries : path, open file, str, Bio.SeqRecord, (id, sequence), mapping, Profile, or an iterable of these
        A path (``-`` is stdin) or an open file that holds FASTA, profiles or alignments; sequences, a mapping of
        names to sequences; profiles, alone or among sequences. See `swsearch.inputs.read_queries`.
    subjects : Database, or as for ``queries``
        A database, its path, or whatever stands for sequences; or a list of databases and paths, which are
        searched as one.
    **options
        The options of a search.
    engine : {"auto", "gpu", "cpu"} or Engine
        What scores; ``auto`` is the GPU where it can be used, and silently the CPU elsewhere.
    threads : int, optional
        Worker threads; one for each processor by default, and at most.
    device : int, sequence of int, or "all", optional
        Which GPU, as ``swsearch doctor`` numbers them; by default the one with the most multiprocessors. Several,
        such as ``[0, 1]``, share the work out, and ``"all"`` are all that can be used.
    gpu_memory : int, optional
        Bytes of each GPU's memory that may be used; by default nearly all that is free.
    progress : callable, optional
        Called with the number of cells just finished, from a thread of the search.
    checkpoint : path, optional
        A folder, made if it is not there, in which queries are kept as far as they are, in iterations after each; the
        same search goes on from there after it was ended or killed, with the same results. One of other queries,
        subjects, options or version is refused.
    query_format : str, optional
        What a file of queries holds: ``fasta``; an alignment, of which a profile is made (``a3m``, ``fasta-aligned``,
        ``stockholm``, ``clustal``); or profiles (``pssm``, ``asn``, ``hmm``, ``hhm``, ``json``). By default what its
        content says.
    client : dask.distributed.Client, optional
        Has the workers of a Dask cluster search, and stays open. ``subjects`` are then database files that they can
        read; ``engine`` and ``gpu_memory`` are for each of them, ``threads`` and ``device`` are left out. Hits whose
        alignments are asked for after the search are aligned here.

    Returns
    -------
    SearchResults
        An iterator: one `SearchResult` per query, in query order. Arguments are checked, and queries read, before
        this function returns; the search itself runs as results are taken.

    Raises
    ------
    InputError
        If a query or an argument cannot be used.
    DatabaseError
        If the subjects cannot be read.
    EngineError
        If the engine fails.
    GpuUnavailableError
        If ``engine`` is ``gpu`` and the GPU cannot be used.
    MemoryLimitError
        If the job does not fit the memory that the engine may use.

    Examples
    --------
    >>> results = swsearch.search("FVNQHLCGSHLVEALYLVCGERGFFYTPKT", "examples/data/swissprot_sample.fasta.gz")
    >>> for hit in next(results).hits[:2]:
    ...     print(hit.subject_id, hit.score, f"{hit.evalue:.0e}", hit.cigar)
    sp|Q28933|IGF1_SUNMU 84 5e-08 25M
    sp|Q5CZK3|INSL3_PANTR 56 4e-03 19M
    """
    chosen = make_search_options("search", **options)
    _check_progress(progress)
    folder = None if checkpoint is None else checkpoint_folder(checkpoint)
    check_subjects(subjects)
    check_not_swapped(queries, subjects)
    threads = check_engine_option("threads", threads)
    read = search_queries(queries, chosen, query_format)
    chosen = chosen.with_profile_scoring(read)
    backend_of: Callable[[Database], Backend]
    if client is not None:
        from swsearch.cluster.backend import ClusterBackend
        from swsearch.cluster.opening import check_is_database, engine_request, pool_of_client

        check_is_database(subjects)
        pool = pool_of_client(client, engine_request(engine, gpu_memory, device, "client"), threads)
        backend_of, close = partial(ClusterBackend, pool=pool), pool.close
    else:
        used, close = make_engine_if_named(engine, threads, device, gpu_memory, chosen.cpu_only)
        backend_of = partial(LocalBackend, engine=used, threads=threads)
    results = SearchResults(
        read, subjects, chosen, backend_of, close=close, progress=progress, threads=threads,
        origin=Origin(input_path(queries)),
    )  # fmt: skip
    if folder is not None:
        results.use_checkpoint(folder)
    return results


class Searcher:
    """Searches one database again and again: it stays on the GPU, or in memory, between calls.

    A context manager; its options hold for all calls. Calls from several threads are safe, and those that come while
    another is scored are scored together; a call with many queries lets others have a turn about every second, or
    after a query that takes longer. Results are those of `search`. A fork cannot use it (e.g. a worker of
    ``multiprocessing.Pool``): make one in each process.

    Parameters
    ----------
    subjects : Database, or as for ``queries`` of `search`
        A database, of proteins or DNA, its path, or whatever stands for sequences. A `Database` stays open when this
        is closed.
    engine : {"auto", "gpu", "cpu"} or Engine
        As for `search`; an `Engine` that is given is used by nobody else until this is closed.
    threads, device, gpu_memory : optional
        As for `search`.
    **options
        As for `search`.

    Raises
    ------
    InputError, DatabaseError, EngineError, GpuUnavailableError, MemoryLimitError
        As `search` does, but now, when the database is opened and the engine made.

    Examples
    --------
    >>> with swsearch.Searcher("uniprot.h5", max_hits=100) as searcher:  # doctest: +SKIP
    ...     for result in searcher.search("MKTAYIAKQRQISFVKSHFSRQ"):
    ...         print(result.to_pandas())
    """

    @takes_options
    def __init__(
        self,
        subjects: Any,
        *,
        engine: str | Engine = "auto",
        threads: int | None = None,
        device: Devices | None = None,
        gpu_memory: int | None = None,
        **options: Unpack[SearchKeywords],
    ) -> None:
        self._options = make_search_options("Searcher", **options)
        if self._options.profile_from is not None:
            remedy = "it holds one database: use swsearch.search"
            raise OptionError("profile_from", self._options.profile_from, "none for a Searcher", remedy)
        check_subjects(subjects)
        threads = check_engine_option("threads", threads)
        used, close = make_engine_if_named(engine, threads, device, gpu_memory, self._options.cpu_only)
        closing = ExitStack()
        closing.callback(close)
        try:
            own = self._options
            alphabet = own.scoring.matrix.alphabet
            database = open_subjects(subjects, own.subject_mask, own.allow_dna, alphabet)
            if database is not subjects:
                closing.callback(database.close)
            self.database, self.engine = database, used
            self._backend = ResidentBackend(database, used, threads)
            closing.callback(self._backend.close)
            assert self._search((), self._options).search  # makes what follows from options alone
        except BaseException:
            closing.close()
            raise
        self._close = weakref.finalize(self, closing.close)  # also where nobody closes it

    def search(
        self, queries: QueriesLike, *, aligned: bool = True, query_format: QueryFormat = "auto"
    ) -> list[SearchResult]:
        """Search with every query.

        Parameters
        ----------
        queries : path, open file, str, Bio.SeqRecord, (id, sequence), mapping, Profile, or an iterable of these
            As for `swsearch.search`.
        aligned : bool, optional
            Whether to align all hits now, together, so that their alignments cost nothing when they are asked for;
            otherwise each is found when it is asked for.
        query_format : str, optional
            As for `swsearch.search`.

        Returns
        -------
        list of SearchResult
            One per query, in query order.

        Raises
        ------
        InputError
            If a query cannot be used.
        EngineError
            If the engine fails, or this was closed.
        """
        check_flag("aligned", aligned)
        read = search_queries(queries, self._options, query_format)
        options = self._options.with_profile_scoring(read)
        with self._search(read, options) as results:
            return [result for batch in results.batches(aligned) for result in batch]

    def _search(self, queries: Sequence[Query], options: SearchOptions) -> SearchResults:
        backend = self._backend
        return SearchResults(queries, self.database, options, lambda _: backend, threads=backend.threads)

    def close(self) -> None:
        """Release the database and the engine; results stay valid."""
        self._close()

    def __enter__(self) -> Searcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_One = Literal["one"]
_Order = Literal["order"]
_All = Literal["all"]


class _SharedArgs(TypedDict, total=False):
    """Options that `score` and `align` share."""

    scoring: Scoring | None
    preset: Preset | None
    mode: Mode
    allow_dna: bool
    threads: int | None
    device: Devices | None
    gpu_memory: int | None


class _ScoreArgs(_SharedArgs, total=False):
    engine: str | Engine
    progress: Progress | None
    query_format: QueryFormat


class _PairArgs(_SharedArgs, total=False):
    engine: str
    ends: Ends | str | None
    memory: int | None


@overload
def score(queries: QueriesLike, subjects: Any, *, top: None = ..., **options: Unpack[_ScoreArgs]) -> ScoreArray: ...
@overload
def score(queries: QueriesLike, subjects: Any, *, top: int, **options: Unpack[_ScoreArgs]) -> TopScores: ...
@overload
def score(
    queries: QueriesLike, subjects: Any, *, top: int | None, **options: Unpack[_ScoreArgs]
) -> ScoreArray | TopScores: ...
def score(
    queries: QueriesLike,
    subjects: Any,
    *,
    scoring: Scoring | None = None,
    preset: Preset | None = None,
    mode: Mode = "local",
    allow_dna: bool = False,
    engine: str | Engine = "auto",
    threads: int | None = None,
    device: Devices | None = None,
    gpu_memory: int | None = None,
    progress: Progress | None = None,
    query_format: QueryFormat = "auto",
    top: int | None = None,
) -> ScoreArray | TopScores:
    """Score every query against every subject, masked as the database says.

    Parameters are those of `search`, and ``top``: subjects of each query that are wanted, the best ones, without the
    whole matrix in memory.

    Returns
    -------
    ndarray, shape (n_queries, n_subjects), int32
        Exact scores in matrix units, queries and subjects in input order. With ``top`` a `TopScores` instead, two
        arrays of shape (n_queries, top), or as many as there are subjects: ``scores``, int32, and ``subjects``,
        int64, their places in the input; the best first, and of equal ones the first in the input.

    Examples
    --------
    >>> swsearch.score(["MKV", "MKL"], ["MKVLA", "MALW"])
    array([[14,  5],
           [11,  8]], dtype=int32)
    """
    recurrence = Recurrence(protein_scoring(scoring, preset), mode)
    top = None if top is None else check_integer("top", top, 1, MAX_INTEGER)
    _check_progress(progress)
    check_subjects(subjects)
    check_not_swapped(queries, subjects)
    has_explicit_scoring, own = scoring is not None or preset is not None, recurrence.scoring
    read = read_queries(
        queries, own.matrix.alphabet, argument="queries", allow_dna=allow_dna, scoring=own, query_format=query_format
    )
    recurrence = replace(recurrence, scoring=apply_profile_scoring(read, own, has_explicit_scoring))
    with ExitStack() as closing:
        used, close = make_engine_if_named(engine, threads, device, gpu_memory)
        closing.callback(close)
        database = open_subjects(subjects, allow_dna=allow_dna, alphabet=own.matrix.alphabet)
        if database is not subjects:
            closing.callback(database.close)
        check_alphabet(database, own.matrix.alphabet)
        if top is None:
            return score_all_pairs(read, database, used, recurrence, progress)
        return top_scores(read, database, used, recurrence, top, progress)


@overload
def align(
    a: QueriesLike, b: Sequences, *, pairs: _One = ..., score_only: Literal[False] = ..., **options: Unpack[_PairArgs]
) -> Alignment: ...
@overload
def align(
    a: QueriesLike, b: Sequences, *, pairs: _Order, score_only: Literal[False] = ..., **options: Unpack[_PairArgs]
) -> list[Alignment]: ...
@overload
def align(
    a: QueriesLike, b: Sequences, *, pairs: _All, score_only: Literal[False] = ..., **options: Unpack[_PairArgs]
) -> list[list[Alignment]]: ...
@overload
def align(
    a: QueriesLike, b: Sequences, *, pairs: _One = ..., score_only: Literal[True], **options: Unpack[_PairArgs]
) -> float: ...
@overload
def align(
    a: QueriesLike, b: Sequences, *, pairs: _Order | _All, score_only: Literal[True], **options: Unpack[_PairArgs]
) -> ScoreArray | FloatArray: ...
@overload
def align(
    a: QueriesLike, b: Sequences, *, pairs: PairSelection = ..., score_only: bool = ..., **options: Unpack[_PairArgs]
) -> Any: ...
def align(
    a: QueriesLike,
    b: Sequences,
    *,
    mode: Mode = "global",
    scoring: Scoring | None = None,
    preset: Preset | None = None,
    ends: Ends | str | None = None,
    allow_dna: bool = False,
    engine: str = "auto",
    threads: int | None = None,
    memory: int | None = None,
    device: Devices | None = None,
    gpu_memory: int | None = None,
    pairs: PairSelection = "one",
    score_only: bool = False,
) -> Any:
    """Align two sequences, a profile with a sequence, or many pairs.

    Parameters
    ----------
    a, b : path, open file, str, Bio.SeqRecord, (id, sequence) or mapping
        The query and the subject; a file must hold one record. See `swsearch.inputs.read_queries` for when a
        string is a path. The query may also be a `swsearch.Profile`, or a file that holds one or an alignment to
        make one of; the alignment then shows the profile's own sequence.
    mode : {"global", "local", "semiglobal"}
        Which ends are free: none, all and any part, all four ends.
    scoring, preset : optional
        As for `search`. For DNA: ``Scoring(dna_matrix(), 10, 1)``. With ``gap_open=0`` gap costs are linear. A
        profile's own gap costs hold where neither is given, and its gap costs by position always.
    ends : Ends or str, optional
        Which ends are free in semi-global mode, such as ``"subject"`` (the query fits whole into the subject) or
        ``"query-end, subject-start"``; see `swsearch.scoring.Ends`.
    allow_dna : bool, optional
        Accept sequences that look like DNA as protein. By default they raise `InputError`.
    engine : {"auto", "gpu", "cpu", "reference"}
        What aligns; ``auto`` is the GPU where there is one and the pair is long enough to gain from it.
    threads, memory : int, optional
        For the CPU: most threads, by default one per processor, and bytes that tables may take, 256 MiB by default.
    device, gpu_memory : optional
        For the GPU: which one, and bytes of its memory that may be used. Of several devices, as for `search`, the one
        with the most multiprocessors aligns the pair.
    pairs : {"one", "order", "all"}
        One sequence of each; the first of ``a`` with the first of ``b``, the second with the second and so on; or
        each of ``a`` with each of ``b``. For the last two, both may be all that stands for queries of `search`.
    score_only : bool, optional
        Whether to return scores, which takes less time and memory than alignments.

    Returns
    -------
    Bio.Align.Alignment, list of these, or list of lists
        Target is ``b``, query ``a``; its ``score`` is set. A list for pairs in order, a list for each of ``a`` for
        all. With ``score_only`` an int, or ndarrays of shape (n,) and (n_a, n_b), int32;
        of gap costs that are fractions floats, float64.

    Raises
    ------
    InputError
        If a sequence or profile cannot be read, or an option cannot be used.
    MemoryLimitError
        If the pair does not fit the memory allowed.

    Examples
    --------
    >>> scoring = swsearch.Scoring("BLOSUM62", gap_open=2, gap_extend=1)
    >>> alignment = swsearch.align("HEAGAWGHEE", "PAWHEAE", mode="local", scoring=scoring)
    >>> alignment.score
    27
    >>> print(alignment)
    b_1               1 AW-HEAE  7
                      0 ||-||-|  7
    a_1               4 AWGHE-E 10
    <BLANKLINE>
    """
    has_explicit_scoring = scoring is not None or preset is not None
    scoring = resolve_scoring(scoring, preset)
    check_choice("engine", engine, ENGINES)
    recurrence = Recurrence(scoring, mode, Ends.parse(ends) if isinstance(ends, str) else ends)
    check_flag("score_only", score_only)
    job = PairwiseJob.read(a, b, pairs, recurrence, has_explicit_scoring, allow_dna)
    new_aligner = create_pair_aligner(
        engine,
        threads=threads,
        memory=memory,
        device=device,
        gpu_memory=gpu_memory,
        cells=job.cells,
        pairs=job.n_pairs,
    )
    with new_aligner as aligner:
        return job.scores(aligner) if score_only else job.alignments(aligner)


def write(
    results: Iterable[SearchResult],
    output: str | Path | IO[Any] | Sequence[str | Path | IO[Any]],
    format: str | Sequence[str] | None = None,
    *,
    header: bool = False,
) -> None:
    """Write results to files or streams, as ``swsearch search`` does.

    Files appear under their names when all is written, and not at all where something fails.

    Parameters
    ----------
    results : SearchResults or iterable of SearchResult
        What `search` returns: it is then run, several hits are aligned at a time, and the report of ``html`` gets the
        distribution of all scores. Or results that were taken from searches of one database with one set of options.
    output : path, file object, or a sequence of these
        ``-`` is stdout. A file object takes text, or bytes where the format is binary, as parquet is; it is neither
        flushed nor closed. Several outputs are written at once.
    format : str or sequence of str, optional
        As ``--outfmt``: a number or name, then, for tables, columns, such as ``"6 qseqid sseqid score"``; one for
        each output. By default a path's extension says it; a file object without a format gets BLAST's table.
    header : bool, optional
        Whether tables of lines (formats 6 and 10) begin with the names of their columns.

    Raises
    ------
    OptionError
        If there is no such format or column, or an extension means none.
    InputError
        If results are of different searches, there are none, or an output cannot take the format.
    OutputError
        If a file cannot be written.

    Examples
    --------
    >>> results = swsearch.search(["MKVLAAGIVGW"], ["MKVLAAGIVGW", "MKVLPAGIVW"])
    >>> swsearch.write(results, "-", "10 qseqid sseqid score cigar")
    query_1,subject_1,57,11M
    query_1,subject_2,35,9M
    """
    from swsearch.report.outputs import outputs_for, with_header, write_reports

    check_flag("header", header)
    outputs = outputs_for(output, format)
    write_reports(results, with_header(outputs) if header else outputs)
