"""Results made by hand, for the tests of the writers."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable

from swsearch.alignment import PairAlignment, align_codes
from swsearch.alphabet import PROTEIN
from swsearch.report import create_writer
from swsearch.results import Hit, RunInfo, SearchResult
from swsearch.scoring import Mode, Scoring
from swsearch.statistics import statistics_for

QUERY = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVV"
SUBJECT = "GGMKTAYIAKQRQISFVKSHFSRQDERLGLIEVQAPLLSRVGDGTQWWDNLSGAEKAVQVKVKALPDAQFGG"

Subject = tuple[str, str, str]
"""Identifier, description and sequence."""


def make_result(
    query: tuple[str, str, str] = ("q1", "the query", QUERY),
    subjects: Iterable[Subject] = (("s1", "a subject", SUBJECT),),
    *,
    mode: Mode = "local",
    scoring: Scoring | None = None,
    residues: int = 1_000_000,
    effective: int | None = None,
    may_align: bool = True,
) -> SearchResult:
    """Align a query with subjects and give the result that a search would, in the subjects' order."""
    scoring = scoring or Scoring()
    statistics = statistics_for(scoring, mode)
    codes = PROTEIN.encode(query[2])
    hits = []
    for index, (name, description, sequence) in enumerate(subjects):
        pair = align_codes(codes, PROTEIN.encode(sequence), scoring, mode)

        def align(pair: PairAlignment = pair) -> PairAlignment:
            assert may_align, "the writer asked for an alignment"
            return pair

        bits = evalue = None
        if statistics is not None:
            bits = statistics.bit_score(pair.score)
            room = len(codes), [len(sequence)], effective or residues
            evalue = float(statistics.evalues([pair.score], *room)[0])
        numbers = index, len(codes), len(sequence), pair.score, bits, evalue
        hits.append(Hit(query[0], name, description, *numbers, align))
    sizes = 3000, residues, effective or residues
    return SearchResult(query[0], query[1], len(codes), hits, scoring, mode, statistics, "some/db.h5", *sizes)


def report(outfmt: str, *results: SearchResult) -> str:
    """Write results as a search does."""
    stream = io.StringIO()
    writer = create_writer(outfmt, stream)
    first = results[0]
    size = first.database_name, first.database_subjects, first.database_residues
    writer.begin(RunInfo("0.1.0", *size, first.scoring, first.mode, first.statistics, 10.0, 500))
    for result in results:
        writer.write(result)
    writer.end()
    return stream.getvalue()


def table(outfmt: str, *results: SearchResult) -> list[list[str]]:
    """Write results as a table and cut it into cells."""
    return [line.split("\t") for line in report(outfmt, *results).removesuffix("\n").split("\n")]


def mutated(sequence: str, rate: float, generator: random.Random) -> str:
    """Exchange residues at a rate, and insert and delete some."""
    letters = PROTEIN.letters[:20]
    parts = []
    for letter in sequence:
        chance = generator.random()
        if chance < 0.02:
            continue
        if chance < 0.04:
            parts.append("".join(generator.choices(letters, k=generator.randint(1, 4))))
        parts.append(generator.choice(letters) if generator.random() < rate else letter)
    return "".join(parts)
