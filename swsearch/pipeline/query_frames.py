"""DNA queries in a search: the frames that are scored in their place, and what was found in these as one ranking.

Each frame is a query like any other to engines, selection and nulls, and keeps its own best subjects. Those of a DNA
query are its frames' together, each subject with the frame that it is best in. That is exact: whatever comes before a
subject in its frame comes before it in the whole as well, so that the best N of the whole are among the frames' best.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swsearch.blocks import IntArray
from swsearch.inputs import Query
from swsearch.masking import runs_of
from swsearch.options.words import SortKey
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.query_range import part_of
from swsearch.pipeline.ranking import Ranked
from swsearch.pipeline.selection import Selection
from swsearch.translation import CODON, Frame, QueryTranslation
from swsearch.translation.codes import reverse_complement, strand_codons, translated_frames


def searched_queries(queries: Sequence[Query], options: SearchOptions) -> list[Query]:
    """Return what is scored: queries or parts of them, or their frames in order where they are DNA; all masked."""
    translation = options.translation
    if translation is None:
        return [part_of(query.masked(options.query_mask), options.query_loc) for query in queries]
    return [frame.masked(options.query_mask) for query in queries for frame in query_frames(query, translation)]


def query_frames(query: Query, translation: QueryTranslation) -> Iterator[Query]:
    """Yield the frames of a DNA query, whose codes are those of `swsearch.alphabet.DNA`, as queries.

    A residue is lower case where one of its three letters is.
    """
    if translation.frame_shift is not None:
        yield from query_strands(query, translation)
        return
    n = len(query.codes)
    lower = np.zeros(n, dtype=np.bool_)
    for begin, end in query.lower:
        lower[begin:end] = True
    for number, residues in translated_frames(query.codes, translation.genetic_code, translation.frames):
        runs: tuple[tuple[int, int], ...] = ()
        if query.lower:
            strand = (lower if number > 0 else lower[::-1])[abs(number) - 1 :]
            in_codons: npt.NDArray[np.bool_] = np.any(strand[: CODON * len(residues)].reshape(-1, CODON), axis=1)
            runs = tuple(runs_of(in_codons))
        yield Query(query.identifier, query.description, residues, runs, frame=Frame(number, n))


def query_strands(query: Query, translation: QueryTranslation) -> Iterator[Query]:
    """Yield the strands of a DNA query as queries, whose codes are those of the codons that begin at each nucleotide.

    A codon is lower case where one of its three letters is.
    """
    n = len(query.codes)
    lower = np.zeros(n, dtype=np.bool_)
    for begin, end in query.lower:
        lower[begin:end] = True
    for number in translation.frames:
        strand, letters = (query.codes, lower) if number > 0 else (reverse_complement(query.codes), lower[::-1])
        codons = strand_codons(strand, translation.genetic_code)
        m = len(codons)
        runs = runs_of(letters[:m] | letters[1 : m + 1] | letters[2 : m + 2]) if query.lower and m else ()
        yield Query(query.identifier, query.description, codons, tuple(runs), frame=Frame(number, n, step=1))


@dataclass(frozen=True, eq=False)
class FrameHits:
    """The hits of a DNA query, best first, as those of its frames.

    Parameters
    ----------
    frames : ndarray, shape (n,), int64
        Which frame each is of, by its place among them.
    rows : ndarray, shape (n,), int64
        Its place among the hits of all frames, one frame's after the other's.
    ranked : Ranked
        The hits.
    """

    frames: IntArray
    rows: IntArray
    ranked: Ranked


def best_of_frames(parts: Sequence[Ranked], limit: int, sort: SortKey = "evalue") -> FrameHits:
    """Choose each subject's best frame, and the best subjects.

    Parameters
    ----------
    parts : sequence of Ranked
        The hits of each frame, all of the same order.
    limit : int
        Most subjects.
    sort : {"evalue", "score"}, optional
        What the order is by, if there are E-values.

    Returns
    -------
    FrameHits
        Where a subject is as good in several frames, the first of these has it.
    """
    frames = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    scores, subjects = (np.concatenate([getattr(each, name) for each in parts]) for name in ("scores", "subjects"))
    rated = [each.evalues for each in parts if each.evalues is not None]
    evalues = np.concatenate(rated) if rated else None
    by_score = (frames, subjects, -scores)
    order = np.lexsort(by_score if evalues is None or sort == "score" else (*by_score, evalues))
    by_subject = np.argsort(subjects[order], kind="stable")  # the best of each subject first
    places = subjects[order][by_subject]
    first = np.ones(len(places), dtype=np.bool_)
    first[1:] = places[1:] != places[:-1]
    rows = order[np.sort(by_subject[first])][:limit]
    ranked = Ranked(scores[rows], subjects[rows], None if evalues is None else evalues[rows])
    return FrameHits(frames[rows], rows, ranked)


def told_of_frames(selections: Sequence[Selection]) -> Selection:
    """Return what is told of a DNA query as a whole: the first of its frames' statistics and doubts, and all counts.

    Candidates are those of one frame.
    """
    if len(selections) == 1:
        return selections[0]
    counts = [each.distribution for each in selections if each.distribution is not None]
    return replace(
        next((each for each in selections if each.statistics is not None), selections[0]),
        distribution=functools.reduce(operator.add, counts) if counts else None,
        doubt=next((each.doubt for each in selections if each.doubt), ""),
    )
