"""Results of translated DNA for the tests of the writers: made by hand, and of what BLAST+ says it has found."""

from __future__ import annotations

import dataclasses
import io
import json
import random
import subprocess
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from Bio.Data import CodonTable

from swsearch.alignment import PairAlignment
from swsearch.alignment_table import AlignmentTable
from swsearch.alphabet import DNA, PROTEIN, ByteArray
from swsearch.engines.cpu.pairs import align_codes
from swsearch.engines.cpu.tracing import align_strands
from swsearch.engines.pools import make_pool
from swsearch.frameshift_alignment import ShiftedAlignment
from swsearch.inputs import Query
from swsearch.lazy import Lazy
from swsearch.recurrence import Recurrence
from swsearch.report import create_writer
from swsearch.results import Headers, Hit, HitList, HitTable, Hsp, SearchResult
from swsearch.results.table import SubjectCodes, hit_statistics
from swsearch.run_info import Program, RunInfo
from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import published_statistics
from swsearch.statistics.methods import HitStatistics
from swsearch.translation import FRAME_NUMBERS, Frame, Frames
from swsearch.translation.genetic_codes import translated_frames

QUERY_IS_DNA: tuple[Program, ...] = ("blastx", "tblastx")
SUBJECT_IS_DNA: tuple[Program, ...] = ("tblastn", "tblastx")

Record = tuple[str, str, str]
"""Identifier, description and letters."""

_CODONS: dict[str, list[str]] = {}
for _codon, _letter in CodonTable.unambiguous_dna_by_id[1].forward_table.items():
    _CODONS.setdefault(_letter, []).append(_codon)

_AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def _complement(dna: str) -> str:
    return dna[::-1].translate(str.maketrans("ACGTN", "TGCAN"))


def records() -> tuple[list[Record], list[Record]]:
    """Three proteins, and DNA that they are found in.

    One record has two of them, the first in two frames since a nucleotide is added to it, the second on the other
    strand; one has the third on the other strand with an unknown codon; one has nothing.
    """
    pick = random.Random(5)

    def dna(protein: str) -> str:
        return "".join(pick.choice(_CODONS[letter]) for letter in protein)

    def noise(length: int) -> str:
        return "".join(pick.choices("ACGT", k=length))

    def protein(length: int) -> str:
        return "".join(pick.choices(_AMINO_ACIDS, k=length))

    def mutated(sequence: str) -> str:
        return "".join(pick.choice(_AMINO_ACIDS) if pick.random() < 0.3 else letter for letter in sequence)

    a, b, c = protein(90), protein(70), protein(120)
    first = noise(50) + dna(a[:45]) + "A" + dna(a[45:]) + noise(31) + _complement(dna(b)) + noise(20)
    second = noise(40) + _complement(dna(c[:60]) + "NNN" + dna(c[63:])) + noise(11)
    proteins = [
        ("A", "protein A", mutated(a)),
        ("B", "", mutated(b)),
        ("C", "protein C OS=x", mutated(c[:50]) + "GG" + mutated(c[50:])),
    ]
    return proteins, [("d1", "two genes", first), ("d2", "minus", second), ("d3", "nothing", noise(100))]


def fasta(some: Iterable[Record]) -> str:
    """Records as FASTA."""
    return "".join(f">{name} {text}".rstrip() + f"\n{letters}\n" for name, text, letters in some)


def run_blast(folder: Path, program: Program, outfmt: str) -> str:
    """Run a program of BLAST+ with the records, and return its output; the folder gets a database of each kind."""
    for kind, some in zip(("prot", "nucl"), records(), strict=True):
        if not (folder / f"{kind}.fa").exists():
            (folder / f"{kind}.fa").write_text(fasta(some))
            command = ["makeblastdb", "-in", f"{kind}.fa", "-dbtype", kind, "-out", kind]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
    query = "nucl" if program in QUERY_IS_DNA else "prot"
    subject = "nucl" if program in SUBJECT_IS_DNA else "prot"
    command = [program, "-query", f"{query}.fa", "-db", subject, "-seg", "no", "-evalue", "0.01", "-outfmt", outfmt]
    command += ["-sum_stats", "false"]
    command += [] if program == "tblastx" else ["-comp_based_stats", "0"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@dataclasses.dataclass(frozen=True)
class Found:
    """An alignment: of which records, in which frames (0 of proteins), and where; coordinates as BLAST's JSON."""

    subject: int
    query_frame: int
    hit_frame: int
    query_from: int
    query_to: int
    hit_from: int
    hit_to: int
    qseq: str
    hseq: str
    score: int
    bit_score: float
    evalue: float


def read_blast(text: str, program: Program) -> list[list[Found]]:
    """The alignments of each query as BLAST's JSON has them, a list a query."""
    _, subjects = records_of(program)
    places = {f"{name} {title}".strip(): place for place, (name, title, _) in enumerate(subjects)}
    names = {field.name for field in dataclasses.fields(Found)}
    found = []
    for report in json.loads(text)["BlastOutput2"]:
        of_query = []
        for hit in report["report"]["results"]["search"]["hits"]:
            for hsp in hit["hsps"]:
                values: dict[str, Any] = {"query_frame": 0, "hit_frame": 0}
                values |= {name: value for name, value in hsp.items() if name in names}
                of_query.append(Found(places[hit["description"][0]["title"]], **values))
        found.append(of_query)
    return found


def align_records(program: Program, least: int = 60) -> list[list[Found]]:
    """The alignments of each query that score so much: the best of each pair of frames, by subject and by score."""
    queries, subjects = records_of(program)
    found = []
    for query in queries:
        of_query: list[Found] = []
        for place, subject in enumerate(subjects):
            sequences = (
                _sequences(query, program in QUERY_IS_DNA),
                _sequences(subject, program in SUBJECT_IS_DNA),
            )
            for (a, query_codes), (b, subject_codes) in product(*sequences):
                pair = align_codes(query_codes, subject_codes, Recurrence(Scoring(), "local"))
                if pair.score >= least:
                    of_query.append(_found(place, (query, a), (subject, b), pair))
        best: dict[int, int] = {}
        for each in of_query:
            best[each.subject] = max(best.get(each.subject, 0), each.score)
        found.append(sorted(of_query, key=lambda each, best=best: (-best[each.subject], each.subject, -each.score)))
    return found


def _found(place: int, query: tuple[Record, int], subject: tuple[Record, int], pair: PairAlignment) -> Found:
    statistics = published_statistics(Scoring(), "local")
    assert statistics is not None
    spans = [
        Frame(frame, len(record[2])).dna_span(begin, end) if frame else (begin, end)
        for (record, frame), begin, end in (
            (query, pair.query_start, pair.query_end),
            (subject, pair.subject_start, pair.subject_end),
        )
    ]
    (query_at, query_to), (hit_at, hit_to) = spans
    evalue = float(statistics.evalues([pair.score], len(pair.query), [len(pair.subject)], 1000)[0])
    return Found(
        place, query[1], subject[1], query_at + 1, query_to, hit_at + 1, hit_to, pair.query_row(), pair.subject_row(),
        pair.score, statistics.bit_score(pair.score), evalue,
    )  # fmt: skip


def _sequences(record: Record, is_dna: bool) -> list[tuple[int, ByteArray]]:
    return list(_frames(record).items()) if is_dna else [(0, PROTEIN.encode(record[2]))]


def records_of(program: Program) -> tuple[list[Record], list[Record]]:
    """The queries and the subjects of a program."""
    proteins, dna = records()
    return dna if program in QUERY_IS_DNA else proteins, dna if program in SUBJECT_IS_DNA else proteins


def _frames(record: Record) -> dict[int, ByteArray]:
    return dict(translated_frames(DNA.encode(record[2])))


def _piece(
    frame: int, codes: ByteArray, dna: str, begin: int, end: int, margin: int
) -> tuple[ByteArray, int, Frame | None]:
    """The codes that an alignment lies in, its first residue there, and the frame.

    A margin cuts a piece out of the frame, with so many residues on either side.
    """
    if not frame:
        return codes, begin - 1, None
    offset = abs(frame) - 1
    first = (begin - 1 - offset) // 3 if frame > 0 else (len(dna) - end - offset) // 3
    if margin < 0:
        return codes, first, Frame(frame, len(dna))
    start = max(first - margin, 0)
    stop = first + (end - begin + 1) // 3 + margin
    return codes[start:stop], first - start, Frame(frame, len(dna), start)


def _cigar(query: str, subject: str) -> tuple[tuple[int, str], ...]:
    runs: list[tuple[int, str]] = []
    for a, b in zip(query, subject, strict=True):
        operation = "D" if a == "-" else "I" if b == "-" else "M"
        n = runs.pop()[0] if runs and runs[-1][1] == operation else 0
        runs.append((n + 1, operation))
    return tuple(runs)


def _hsp(program: Program, query: Record, found: Found, margin: int) -> Hsp:
    subject = records_of(program)[1][found.subject]
    sides = []
    for record, frame, begin, end, around in (
        (query, found.query_frame, found.query_from, found.query_to, -1),
        (subject, found.hit_frame, found.hit_from, found.hit_to, margin),
    ):
        codes = _frames(record)[frame] if frame else PROTEIN.encode(record[2])
        sides.append(_piece(frame, codes, record[2], begin, end, around))
    (a, query_start, query_frame), (b, subject_start, subject_frame) = sides
    cigar = _cigar(found.qseq, found.hseq)
    pair = PairAlignment(a, b, Scoring(), found.score, query_start, subject_start, cigar)
    assert pair.query_row() == found.qseq
    assert pair.subject_row() == found.hseq
    bits, evalue = found.bit_score, found.evalue
    return Hsp(pair, found.score, bits, evalue, None, None, query_frame, subject_frame)


def result_of(program: Program, number: int, found: Sequence[Found], *, margin: int = 5) -> SearchResult:
    """A query's result with these alignments, which stand as BLAST has them.

    Where subjects are DNA each alignment is a hit, of a piece of a frame with a margin around it, as a search finds
    them; otherwise each subject is one, with several alignments.
    """
    query, subjects = records_of(program)[0][number], records_of(program)[1]
    hsps = [(each.subject, _hsp(program, query, each, margin)) for each in found]
    grouped: list[tuple[int, list[Hsp]]] = []
    for subject, hsp in hsps:
        if grouped and grouped[-1][0] == subject and program not in SUBJECT_IS_DNA:
            grouped[-1][1].append(hsp)
        else:
            grouped.append((subject, [hsp]))
    grouped.sort(key=lambda each: (each[1][0].evalue, -each[1][0].score))  # pieces are ranked each on its own
    hits = []
    for subject, (best, *others) in grouped:
        name, text, letters = subjects[subject]
        numbers = subject, len(query[2]), len(letters), best.score, best.bit_score, best.evalue
        hits.append(
            Hit(
                query[0], name, text, *numbers, Lazy.of_value(best.pair), None, None,
                Lazy.of_value(others) if others else None, best.query_frame, best.subject_frame,
            )
        )  # fmt: skip
    residues = sum(len(letters) for _, _, letters in subjects)
    return SearchResult(
        query[0], query[1], len(query[2]), hits, Scoring(), "local", published_statistics(Scoring(), "local"),
        "some/db.h5",
        len(subjects), residues, residues, program=program, genetic_code=1 if program in QUERY_IS_DNA else None,
        database_genetic_code=1 if program in SUBJECT_IS_DNA else None,
    )  # fmt: skip


def as_found_together(result: SearchResult) -> SearchResult:
    """The same result, of hits with one alignment, as a search gives those that it aligned together."""
    pairs = [hit.pair for hit in result.hits]
    query_frames = [hit.query_frame for hit in result.hits if hit.query_frame]
    subject_frames = [hit.subject_frame for hit in result.hits if hit.subject_frame]
    codes = {hit.query_frame.number if hit.query_frame else 0: hit.pair.query for hit in result.hits}
    numbers = [number for number in (0, *FRAME_NUMBERS) if number in codes]
    queries = [
        Query(result.query_id, result.query_description, codes[number], frame=Frame(number, result.query_length))
        if number
        else Query(result.query_id, result.query_description, codes[number])
        for number in numbers
    ]
    no_numbers = np.full(len(pairs), np.nan)
    table = HitTable(
        np.arange(len(pairs)) + 100,  # of pieces
        np.array([len(pair.subject) for pair in pairs]),
        np.array([hit.score for hit in result.hits]),
        dataclasses.replace(hit_statistics(result.hits), z_scores=no_numbers, evalues_published=no_numbers),
        Headers.from_texts([(hit.subject_id, hit.subject_description) for hit in result.hits]),
        np.array([numbers.index(frame.number) for frame in query_frames]) if query_frames else None,
        Frames.from_frames(subject_frames) if subject_frames else None,
        np.array([hit.subject_index for hit in result.hits]),
    )  # fmt: skip
    hits = HitList(queries[0], result.scoring, table, lambda row: pairs[row], queries=queries)
    offsets = np.cumsum([0, *(len(pair.subject) for pair in pairs)])
    hits.set_alignments(
        AlignmentTable.from_pairs(pairs), SubjectCodes(np.concatenate([p.subject for p in pairs]), None, offsets)
    )
    return dataclasses.replace(result, hits=hits)


SHIFT = 15
"""Cost of a frame shift in `shifted_result`."""


def shifted_result(*, together: bool) -> SearchResult:
    """The first DNA record against all proteins, with frame shifts; its hits aligned together, or each alone."""
    proteins, dna = records()
    name, text, letters = dna[0]
    strands = []
    for sign in (1, -1):
        frames = [codes for number, codes in _frames(dna[0]).items() if number * sign > 0]
        codons = np.zeros(len(letters) - 2, dtype=np.uint8)
        for offset, codes in enumerate(frames):
            codons[offset::3] = codes
        strands.append(Query(name, text, codons, frame=Frame(sign, len(letters), step=1)))
    found = []
    for place, (_, _, protein) in enumerate(proteins):
        subject = PROTEIN.encode(protein)
        aligned = align_strands(
            make_pool([strand.codes for strand in strands]),
            make_pool([subject]),
            np.array([[0, 0], [1, 0]]),
            Recurrence(Scoring(), "local", frame_shift=SHIFT),
        )
        strand = int(np.argmax(aligned.score))
        columns = aligned.score, aligned.query_start, aligned.subject_start
        score, query_start, subject_start = (int(column[strand]) for column in columns)
        runs = slice(*aligned.run_offsets[strand : strand + 2].tolist())
        operations = aligned.run_operations[runs].tobytes().decode("ascii")
        cigar = tuple(zip(aligned.run_lengths[runs].tolist(), operations, strict=True))
        if score >= 60:
            codes = strands[strand].codes, subject
            pair = ShiftedAlignment(*codes, Scoring(), score, query_start, subject_start, cigar, frame_shift=SHIFT)
            found.append((place, strand, pair))
    found.sort(key=lambda each: -each[2].score)
    pairs = [pair for _, _, pair in found]
    scores = np.array([pair.score for pair in pairs])
    no_numbers = np.full(len(pairs), np.nan)
    table = HitTable(
        np.array([place for place, _, _ in found]), np.array([len(pair.subject) for pair in pairs]), scores,
        HitStatistics(scores / 3.0, np.exp(-scores), no_numbers, no_numbers),
        Headers.from_texts([proteins[place][:2] for place, _, _ in found]),
        np.array([strand for _, strand, _ in found]),
    )  # fmt: skip
    hits = HitList(strands[0], Scoring(), table, lambda row: pairs[row], queries=strands)
    if together:
        offsets = np.cumsum([0, *(len(pair.subject) for pair in pairs)])
        hits.set_alignments(
            AlignmentTable.from_pairs(pairs), SubjectCodes(np.concatenate([p.subject for p in pairs]), None, offsets)
        )
    return dataclasses.replace(result_of("blastx", 0, []), hits=hits)


def translated_run(first: SearchResult) -> RunInfo:
    """Return the run that a search would report for a result."""
    size = first.database_name, first.database_subjects, first.database_residues
    codes = {"genetic_code": first.genetic_code, "database_code": first.database_genetic_code}
    return RunInfo(
        "0.1.0", *size, first.scoring, first.mode, first.statistics, 0.01, 500, program=first.program, **codes
    )


def write_translated(outfmt: str, results: Sequence[SearchResult]) -> Any:
    """Write results in a format, and return its output."""
    binary = outfmt in ("parquet", "arrow")
    stream: Any = io.BytesIO() if binary else io.StringIO()
    writer = create_writer(outfmt, stream)
    writer.begin(translated_run(results[0]))
    for result in results:
        writer.write(result)
    writer.end()
    writer.discard()
    return stream.getvalue()
