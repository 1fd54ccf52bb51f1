"""Results made by hand, for the tests of the writers."""

from __future__ import annotations

import dataclasses
import io
import random
from collections.abc import Iterable

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import PROTEIN
from swsearch.engines.cpu.pairs import align_codes
from swsearch.inputs import Query
from swsearch.lazy import Lazy
from swsearch.options.kinds import Mode
from swsearch.recurrence import Recurrence
from swsearch.report import Writer, create_writer
from swsearch.results import Hit, HitList, HitTable, Hsp, SearchResult
from swsearch.results.table import SubjectCodes
from swsearch.run_info import RunInfo
from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import published_statistics

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
    statistics = published_statistics(scoring, mode)
    codes = PROTEIN.encode(query[2])
    hits = []
    for index, (name, description, sequence) in enumerate(subjects):
        pair = align_codes(codes, PROTEIN.encode(sequence), Recurrence(scoring, mode))

        def align(pair: PairAlignment = pair) -> PairAlignment:
            assert may_align, "the writer asked for an alignment"
            return pair

        bits = evalue = None
        if statistics is not None:
            bits = statistics.bit_score(pair.score)
            room = len(codes), [len(sequence)], effective or residues
            evalue = float(statistics.evalues([pair.score], *room)[0])
        numbers = index, len(codes), len(sequence), pair.score, bits, evalue
        hits.append(Hit(query[0], name, description, *numbers, Lazy(align)))
    sizes = 3000, residues, effective or residues
    nothing = HitList(Query(query[0], query[1], codes), scoring, HitTable.from_hits([]), None)
    return SearchResult(
        query[0], query[1], len(codes), hits or nothing, scoring, mode, statistics, "some/db.h5", *sizes
    )


def second_alignment(hit: Hit) -> list[Hsp]:
    """Return a second alignment of a hit: the end of its first."""
    pair, columns = hit.pair, hit.pair.cigar[-1][0] - 2
    at = pair.query_end - columns, pair.subject_end - columns
    end = PairAlignment(pair.query, pair.subject, pair.scoring, 0, *at, ((columns, "M"),))
    second = dataclasses.replace(end, score=end.recompute_score())
    bits = None if hit.bit_score is None else hit.bit_score / 4
    return [Hsp(second, second.score, bits, None if hit.evalue is None else 2.5)]


def as_columns(result: SearchResult) -> SearchResult:
    """Return the same result with its hits as columns, as a search gives those that it aligned together."""
    pairs = [hit.pair for hit in result.hits]
    if not pairs:
        return result
    query = Query(result.query_id, result.query_description, pairs[0].query, (), pairs[0].query_letters)
    further = (lambda row, _: result.hits[row]._find_hsps) if result.may_have_more_hsps else None
    hits = HitList(query, result.scoring, HitTable.from_hits(result.hits), lambda row: pairs[row], further)
    empty = np.zeros(0, dtype=np.uint8)
    masked = np.array([pair.subject_letters is not None for pair in pairs], dtype=np.bool_)
    subjects = SubjectCodes(
        np.concatenate([empty, *(pair.subject for pair in pairs)]),
        np.concatenate([empty, *(pair.display_letters[1] for pair in pairs)]) if masked.any() else None,
        np.cumsum([0, *(len(pair.subject) for pair in pairs)]),
        masked if masked.any() else None,
    )
    hits.set_alignments(AlignmentTable.from_pairs(pairs), subjects)
    return dataclasses.replace(result, hits=hits)


def with_two_alignments(result: SearchResult) -> SearchResult:
    """Give each hit of a result a second alignment."""
    hits = [dataclasses.replace(hit, _find_hsps=Lazy.of_value(second_alignment(hit))) for hit in result.hits]
    return dataclasses.replace(result, hits=hits)


HOSTILE = [
    ("plain", "a subject"),
    ("sp|P1|X", "<script>alert(\"1\")</script> & 'quoted' ]]> -->"),
    ("controls", "tab\there \x1b[1m\x00 line\nend\x85 \u2028"),
    ("letters", "Sch\u00fctzenpanzer \u4e2d\u6587 \U0001f9ec not\ufffe\uffff characters"),
    ("bytes\udce9", "latin \udcff"),
    ("one", "first protein\x01two second > one\x01three"),
    ("", ""),
    ("long", "x" * 10_000),
]
"""Identifiers and descriptions as no file should have them, but some do."""


def hostile_result() -> SearchResult:
    """Return a result with such headers."""
    description = 'tab\there <b>"bold"</b> & \u00fc \udcff\x07'
    return make_result(("q<1>", description, QUERY), [(*header, SUBJECT) for header in HOSTILE])


def report(outfmt: str, *results: SearchResult) -> str:
    """Write results as a search does."""
    stream = io.StringIO()
    writer = create_writer(outfmt, stream)
    write_all(writer, *results)
    return stream.getvalue()


def write_all(writer: Writer, *results: SearchResult) -> None:
    """Have a writer write results as a search does."""
    writer.begin(run_info(results[0]))
    for result in results:
        writer.write(result)
    writer.end()
    writer.discard()


def run_info(first: SearchResult) -> RunInfo:
    """Return what a search says of the run that a result is of."""
    size = first.database_name, first.database_subjects, first.database_residues
    evalue = None if first.statistics is None else 10.0
    return RunInfo("0.1.0", *size, first.scoring, first.mode, first.statistics, evalue, 500)


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


TWO = (("s1", "a subject", SUBJECT), ("s2", "", QUERY[:40]))
PARTS = [("s1", "a subject", SUBJECT), ("s2", "", "GG" + QUERY[10:50] + "GG"), ("s3", "stop", QUERY[:-1] + "*")]
NOTHING = make_result(("q2", "", "WWW"), [])
EMPTY = make_result(("q3", "no residues", ""), [])

CASES = {
    "plain": [make_result(subjects=TWO), NOTHING, make_result(("q4", "", QUERY), TWO)],
    "nothing": [NOTHING],
    "empty": [EMPTY, make_result()],
    "two": [with_two_alignments(make_result(subjects=TWO))],
    "hostile": [hostile_result()],
    "global": [make_result(subjects=[*TWO, ("s3", "no residues", ""), ("s4", "", "PPPP")], mode="global")],
    "unpublished": [make_result(subjects=TWO, scoring=Scoring(gap_open=2))],
}
"""Results that test the formats that BLAST defines."""
