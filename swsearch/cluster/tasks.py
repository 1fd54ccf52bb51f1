"""What workers compute: functions of bytes, which return bytes.

Each takes what it needs from its payload, and an engine and open volumes from what the worker keeps. What it computes
follows from the payload alone, so that any worker may do it, and do it again.
"""

from __future__ import annotations

import json
import platform
from itertools import pairwise

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.cluster.sent import EngineWanted, GroupSent, PairsSent, VolumeWanted, VolumeWork, of_bytes, to_bytes
from swsearch.cluster.transport import WorkerPlace
from swsearch.cluster.worker import OpenWork, bench_of, open_volume
from swsearch.errors import SwsearchError
from swsearch.inputs import Query
from swsearch.pipeline.additional_hsps import FoundFurther, find_after
from swsearch.pipeline.candidate_codec import packed
from swsearch.pipeline.null_models import NullMaker, PairsAsked
from swsearch.pipeline.pair_work import FurtherToFind, PairsToAlign, PairWork
from swsearch.pipeline.prefetch import check_wanted, for_each
from swsearch.pipeline.scorer import Scorer
from swsearch.pipeline.subject_reader import SubjectReader
from swsearch.recurrence import Recurrence
from swsearch.statistics.fitted import Fit
from swsearch.version import version


def score(payload: bytes, worker: WorkerPlace) -> bytes:
    """Score a group of queries with a share of a volume.

    Parameters
    ----------
    payload : bytes
        A `VolumeWork` and a `GroupSent`, each as bytes, then which of how many shares.
    worker : WorkerPlace
        Where this runs.

    Returns
    -------
    bytes
        Selections, one per query, as `swsearch.pipeline.candidate_codec.packed` has them; places are those in the
        volume.
    """
    common, sent, place, of = of_bytes(payload)
    bench = bench_of(worker)
    opened = bench.work(common)
    work: VolumeWork = opened.work
    group: GroupSent = of_bytes(sent)
    share, least, included = opened.share(place, of)
    while True:
        check_wanted()
        engine = bench.engine(work.engine)
        scorer = Scorer(engine, work.options, work.recurrence, least, opened.allowed, None, bench.threads, included)
        prepared = scorer.prepare(group.queries, group.nulls)
        with bench.turn(engine) as is_ours:
            if not is_ours:  # it was closed for another search
                continue
            held = bench.loaded(engine, (work.volume, work.mask, place, of), share, work.largest)
            found = scorer.found(prepared, held.loaded, held.plan.in_flight)
        return packed(scorer.collected(prepared, found))


def fit(payload: bytes, worker: WorkerPlace) -> bytes:
    """Make the nulls of queries.

    Parameters
    ----------
    payload : bytes
        A `Fit`, a `Recurrence` and queries.
    worker : WorkerPlace
        Where this runs.

    Returns
    -------
    bytes
        A list with a `FittedStatistics` for each query, or None for one without residues.
    """
    how: Fit
    recurrence: Recurrence
    queries: list[Query]
    how, recurrence, queries = of_bytes(payload)
    return to_bytes(NullMaker(how, recurrence, bench_of(worker).threads).of_queries(queries))


def nulls(payload: bytes, worker: WorkerPlace) -> bytes:
    """Make the nulls of pairs of queries and subjects of a volume.

    Parameters
    ----------
    payload : bytes
        A `VolumeWork`, as bytes, and a `PairsSent`.
    worker : WorkerPlace
        Where this runs.

    Returns
    -------
    bytes
        Of all pairs the chance levels, and the bounds, as `PairNulls` has them.
    """
    common, sent = of_bytes(payload)
    pairs: PairsSent = sent
    opened = bench_of(worker).work(common)
    asked = []
    for k, (begin, end) in enumerate(pairwise(np.cumsum([0, *pairs.counts]).tolist())):
        part = slice(begin, end)
        columns = pairs.subjects[part], pairs.scores[part], pairs.lengths[part]
        asked.append(PairsAsked(pairs.queries[k], pairs.statistics[k], *columns, pairs.limits[k]))
    found = _pair_work(opened, bench_of(worker).threads).nulls(asked)
    return to_bytes(
        (np.concatenate([each.levels for each in found]), np.concatenate([each.bounds for each in found]))
    )


def align(payload: bytes, worker: WorkerPlace) -> bytes:
    """Align queries with subjects of a volume.

    Parameters
    ----------
    payload : bytes
        A `VolumeWork`, as bytes, and `PairsToAlign`.
    worker : WorkerPlace
        Where this runs.

    Returns
    -------
    bytes
        An `AlignmentTable` and the `SubjectCodes`.
    """
    common, sent = of_bytes(payload)
    pairs: PairsToAlign = sent
    bench = bench_of(worker)
    opened = bench.work(common)
    with bench.aligner(bench.engine(opened.work.engine), len(pairs.scores)) as aligner:
        return to_bytes(_pair_work(opened, bench.threads).aligned(pairs, aligner))


def further(payload: bytes, worker: WorkerPlace) -> bytes:
    """Find further alignments of queries with subjects of a volume.

    Parameters
    ----------
    payload : bytes
        A `VolumeWork`, as bytes, and `FurtherToFind`.
    worker : WorkerPlace
        Where this runs.

    Returns
    -------
    bytes
        For each pair a list of what `swsearch.pipeline.additional_hsps.find_after` returns.
    """
    common, sent = of_bytes(payload)
    wanted: FurtherToFind = sent
    bench = bench_of(worker)
    opened = bench.work(common)
    pairs, best, scoring = wanted.pairs, wanted.best, opened.work.options.scoring
    subjects = _pair_work(opened, bench.threads).reader.shown(pairs.subjects)
    rows = [None if query.profile is None else query.rows(scoring) for query in pairs.queries]
    found: list[list[FoundFurther]] = [[] for _ in pairs.scores]

    def find(place: int) -> None:
        check_wanted()
        k = int(pairs.of_query[place])
        first = PairAlignment(
            pairs.queries[k].codes, subjects.codes_of(place), scoring, int(best.score[place]),
            int(best.query_start[place]), int(best.subject_start[place]), best.cigar(place), query_rows=rows[k],
        )  # fmt: skip
        found[place] = find_after(first, wanted.most, int(wanted.least[place]))

    for_each(find, range(len(found)), bench.threads)
    return to_bytes(found)


def _pair_work(opened: OpenWork, threads: int) -> PairWork:
    """Return what computes nulls and alignments of pairs with a volume."""
    work = opened.work
    reader = SubjectReader(opened.volume, work.mask, work.recurrence)
    maker = None if work.fit is None else NullMaker(work.fit, work.recurrence, threads)
    return PairWork(reader, threads, maker)


def facts(payload: bytes, worker: WorkerPlace) -> bytes:
    """Tell of a worker, and whether it can read volumes.

    Parameters
    ----------
    payload : bytes
        An `EngineWanted` and a list of `VolumeWanted`.
    worker : WorkerPlace
        Where this runs.

    Returns
    -------
    bytes
        An object of JSON: ``host``, ``version``, ``python``, ``threads``, ``memory`` in bytes, ``engine`` as a run
        would name it, ``name`` of the engine, ``fallback`` (why it is no GPU), ``problem`` (why there is no engine),
        and ``volumes``, by path why each cannot be read, empty where it can.
    """
    wanted: EngineWanted
    asked: list[VolumeWanted]
    wanted, asked = of_bytes(payload)
    bench = bench_of(worker)
    told = {"engine": "", "name": "", "fallback": "", "problem": ""}
    try:
        engine = bench.engine(wanted)
        told |= {"engine": engine.description, "name": engine.name, "fallback": engine.fallback}
    except SwsearchError as error:
        told["problem"] = str(error)
    return json.dumps(
        {
            "host": worker.host,
            "version": version(),
            "python": platform.python_version(),
            "threads": bench.threads,
            "memory": bench.memory,
            **told,
            "volumes": {each.path: _problem_of(each, worker.host) for each in asked},
        }
    ).encode()


def _problem_of(wanted: VolumeWanted, host: str) -> str:
    """Say why a volume cannot be read; nothing if it can."""
    try:
        open_volume(wanted, host).close()
    except SwsearchError as error:
        return str(error)
    return ""
