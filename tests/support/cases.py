"""Random sequences, scoring systems and chunks for tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from swsearch.alphabet import N_CODES, PROTEIN
from swsearch.blocks import LANES, Chunk, block_columns, interleave
from swsearch.engines.gpu.tracks import single_track, split_tracks, two_tracks
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.scoring import (
    PADDING_SCORE,
    Ends,
    Matrix,
    PositionGapCosts,
    QueryProfile,
    Scoring,
    matrix_from_text,
    rows_of,
)

N_LETTERS = len(PROTEIN.letters)


def codes(max_size: int = 40, min_size: int = 0, letters: int = N_LETTERS) -> st.SearchStrategy:
    """Encoded sequences; a small number of letters makes many ties and long alignments."""
    return st.lists(st.integers(0, letters - 1), min_size=min_size, max_size=max_size).map(
        lambda values: np.array(values, dtype=np.uint8)
    )


def any_codes(max_size: int = 40, min_size: int = 0) -> st.SearchStrategy:
    """Encoded sequences of few or of all letters."""
    return st.sampled_from([1, 2, 3, 20, N_LETTERS]).flatmap(lambda k: codes(max_size, min_size, k))


scorings = st.builds(
    Scoring,
    st.sampled_from(["BLOSUM62", "BLOSUM45", "PAM30", "PAM250", "STR", "RAO"]),
    st.sampled_from([0, 1, 2, 5, 11, 40, 200]),
    st.sampled_from([0, 1, 2, 7]),
)
modes = st.sampled_from(MODES)
modes_with_ends = st.one_of(
    st.tuples(st.sampled_from(["local", "global"]), st.none()),
    st.tuples(st.just("semiglobal"), st.builds(Ends, *[st.booleans()] * 4)),
)
"""Modes, with every choice of free ends in semi-global mode."""


def flat_matrix(same: int, other: int) -> Matrix:
    """Make a matrix of two scores."""
    lines = [" ".join(PROTEIN.letters)]
    lines += [a + " " + " ".join(str(same if a == b else other) for b in PROTEIN.letters) for a in PROTEIN.letters]
    return matrix_from_text("\n".join(lines), f"{same} and {other}", PROTEIN)


def random_codes(generator: np.random.Generator, length: int, letters: int = N_LETTERS) -> np.ndarray:
    """Make one encoded sequence."""
    return generator.integers(0, letters, length).astype(np.uint8)


def random_profile(
    generator: np.random.Generator, length: int, lowest: int = -9, highest: int = 12, *, most_cost: int | None = None
) -> QueryProfile:
    """Make a query whose scores, and gap costs from 0 to ``most_cost`` if there is one, are its positions' own."""
    scores = np.full((length, N_CODES), PADDING_SCORE, dtype=np.int8)
    scores[:, :N_LETTERS] = generator.integers(lowest, highest + 1, (length, N_LETTERS))
    gaps = None if most_cost is None else PositionGapCosts(*generator.integers(0, most_cost + 1, (4, length)))
    return QueryProfile(scores, random_codes(generator, length, 20), is_specific=True, gaps=gaps)


def make_chunk(sequences: list[np.ndarray]) -> Chunk:
    """Lay sequences out as the database does."""
    order = sorted(range(len(sequences)), key=lambda i: (-len(sequences[i]), i))
    lengths = np.array([len(sequences[i]) for i in order], dtype=np.int32)
    offsets = np.concatenate(([0], np.cumsum(block_columns(lengths)))).astype(np.int64)
    residues = np.empty((int(offsets[-1]), LANES), dtype=np.uint8)
    empty = np.zeros(0, dtype=np.uint8)
    for block in range(len(offsets) - 1):
        part = order[block * LANES : (block + 1) * LANES]
        joined = np.concatenate([empty, *(sequences[i] for i in part)])
        interleave(
            joined, lengths[block * LANES : (block + 1) * LANES], residues[offsets[block] : offsets[block + 1]]
        )
    return Chunk(residues, offsets, lengths, np.array(order, dtype=np.int64))


def scores_of(engine, group, chunk, scoring, mode):
    """Score encoded queries, or profiles, against a chunk; return scores in chunk order."""
    loaded = engine.load(chunk)
    try:
        return engine.score(engine.prepare([rows_of(q, scoring) for q in group], Recurrence(scoring, mode)), loaded)
    finally:
        engine.release(loaded)


def scores_in_order(engine, queries, subjects, recurrence):
    """Score encoded queries, or profiles, against subjects; return scores in their order."""
    chunk = make_chunk(subjects)
    loaded = engine.load(chunk)
    ordered = np.empty((len(queries), len(subjects)), dtype=np.int32)
    group = engine.prepare([rows_of(query, recurrence.scoring) for query in queries], recurrence)
    ordered[:, chunk.subjects] = engine.score(group, loaded)
    engine.release(loaded)
    return ordered


def check(gpu, cpu, group, subjects, scoring=None, mode="local"):
    """Compare every score, name the first that differ, and return the expected ones."""
    scoring, chunk = scoring or Scoring(), make_chunk(subjects)
    expected = scores_of(cpu, group, chunk, scoring, mode)
    got = scores_of(gpu, group, chunk, scoring, mode)
    wrong = [
        (q, len(group[q]), int(chunk.lengths[s]), int(got[q, s]), int(expected[q, s]))
        for q, s in np.argwhere(got != expected)[:5].tolist()
    ]
    case = (scoring.describe(), mode, [len(query) for query in group], len(subjects))
    assert not wrong, (case, "query, its length, subject's length, got, expected", wrong)
    return expected


def draw(seed, lengths, letters=20):
    """Make encoded sequences of these lengths."""
    generator = np.random.default_rng(seed)
    return [random_codes(generator, int(n), letters) for n in lengths]


def plan_of(plain):
    """Return a stand-in for `plan_batches` that lays every query out for one variant of the inter-task kernel."""

    def plan(profiles, chosen, form):
        variant = replace(plain, gaps=form.gaps)
        if variant.queries == 1:
            return [single_track(profiles, chosen, variant)]
        lengths = {query: len(profiles[query]) for query in chosen}
        return [two_tracks(profiles, split_tracks(lengths, variant.rows), variant)]

    return plan
