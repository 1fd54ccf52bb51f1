"""The columns of tables: for each its name, the name that comment lines give it, and how lines fill it.

Names and values are BLAST's, so that whatever reads blastp's tables reads these; ``cigar``, ``subject_index``,
``zscore``, ``evalue_published`` and ``iteration`` are ours. Of translated DNA they are those of blastx, tblastn and
tblastx.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from swsearch.blocks import IntArray
from swsearch.errors import OptionError
from swsearch.report import blast_terms, headers, numbers, taxa
from swsearch.report.base import did_you_mean
from swsearch.report.numbers import whole
from swsearch.report.portions import AlignedPortion, Portion, aligned_portions, mismatches, portions
from swsearch.results import SearchResult
from swsearch.translation.frame import CODON

STANDARD = (
    "qaccver", "saccver", "pident", "length", "mismatch", "gapopen",
    "qstart", "qend", "sstart", "send", "evalue", "bitscore",
)  # fmt: skip
"""What ``std`` stands for, and what a table holds when no columns are asked for."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        As the user asks for it.
    field : str
        As blastp's ``# Fields:`` line calls it.
    texts : callable
        Gives what stands in it, one text per line of a portion. One that needs alignments is given an
        `AlignedPortion`.
    needs_alignment : bool
        Whether it takes the alignment to do so.
    """

    name: str
    field: str
    texts: Callable[[Any], list[str]]
    needs_alignment: bool = True


OfHits = Callable[[Portion], list[str]]


def _of_hits(name: str, field: str, texts: OfHits) -> Column:
    """Return a column that is the same for all alignments of a hit."""
    return Column(name, field, lambda portion: portion.of_lines(texts(portion)), False)


def _of_scores(name: str, field: str, texts: OfHits) -> Column:
    """Return a column that takes what a search knows of a line without its alignment."""
    return Column(name, field, texts, False)


def _count(name: str, field: str, counts: Callable[[AlignedPortion], IntArray]) -> Column:
    """Return a column of numbers that are counted of alignments."""
    return Column(name, field, lambda portion: whole(counts(portion)))


def _query_id(portion: Portion) -> list[str]:
    return [headers.identifier(portion.result.query_id)] * portion.n_hits


def _query_accession(with_version: bool) -> OfHits:
    def texts(portion: Portion) -> list[str]:
        return headers.accessions(_query_id(portion)[:1], with_version) * portion.n_hits

    return texts


def _query_title(portion: Portion) -> list[str]:
    return [blast_terms.query_title(portion.result) or headers.MISSING] * portion.n_hits


def _all_subject_ids(portion: Portion) -> list[str]:
    return [";".join([name for name, _ in headers.entries_of(titles)]) for titles in portion.titles]


def _all_accessions(portion: Portion) -> list[str]:
    names = ([name for name, _ in headers.entries_of(titles)] for titles in portion.titles)
    return [";".join(headers.accessions(each, False)) for each in names]


def _shares(parts: IntArray, wholes: IntArray) -> list[str]:
    """Return whole percentages."""
    pairs = zip(parts.tolist(), wholes.tolist(), strict=True)
    return [str(numbers.whole_percentage(part, whole)) for part, whole in pairs]


def _coverages(portion: AlignedPortion) -> list[str]:
    """Return the parts of the query between each alignment's first and last residue, in per cent.

    Of DNA, blastx divides residues by nucleotides, so that a whole frame covers 33 %; and so do we.
    """
    begins, ends = portion.query_spans
    residues = (ends - begins) // (CODON if portion.result.has_query_frames else 1)
    return _shares(residues, np.full(len(portion), portion.result.query_length))


def _coverages_by_all(portion: AlignedPortion) -> list[str]:
    """Return the parts of the query that all alignments of a hit cover together, in per cent."""
    if portion.is_single and not portion.result.has_query_frames:
        return _coverages(portion)
    begins, ends = portion.query_spans
    spans = list(zip(begins.tolist(), ends.tolist(), strict=True))
    return portion.of_lines([_covered(each, portion.result.query_length) for each in portion.by_hit(spans)])


def _covered(spans: list[tuple[int, int]], length: int) -> str:
    covered = reached = 0
    for start, end in sorted(spans):
        covered += max(end, reached) - max(start, reached)
        reached = max(end, reached)
    return str(numbers.whole_percentage(covered, length))


def _subject_coverages(portion: AlignedPortion) -> list[str]:
    begins, ends = portion.subject_spans
    return _shares(ends - begins, portion.subject_lengths[portion.hit_of_line])


def _percentages(portion: AlignedPortion, parts: IntArray, decimals: int) -> list[str]:
    return numbers.percentages(parts, portion.alignments.length, decimals)


def _frames(portion: AlignedPortion, side: str) -> list[str]:
    """Return the frame of one side of each alignment; blastp says 1 of proteins, the others 0."""
    if portion.result.program == "blastp":
        return ["1"] * len(portion)
    return whole(portion.query_frames if side == "query" else portion.subject_frames)


def _both_frames(portion: AlignedPortion) -> list[str]:
    pairs = zip(_frames(portion, "query"), _frames(portion, "subject"), strict=True)
    return [f"{query}/{subject}" for query, subject in pairs]


def _btops(portion: AlignedPortion) -> list[str]:
    return [btop or headers.MISSING for btop in portion.btops]


def _taxon_columns(of_taxon: str, one: str, field: str, several: str, fields: str) -> list[Column]:
    """Return the columns of what a field of `Taxon` says: of a subject's first taxon, and of all."""
    return [
        _of_hits(one, field, lambda of: taxa.first_texts(of, of_taxon)),
        _of_hits(several, fields, lambda of: taxa.all_texts(of, of_taxon)),
    ]


def _known_columns() -> list[Column]:
    # accessions are what blastp prints of databases made with -parse_seqids. Names are blastp's; qtitle and scovhsp
    # are diamond's.
    return [
        _of_hits("qseqid", "query id", _query_id),
        _of_hits("qacc", "query acc.", _query_accession(False)),
        _of_hits("qaccver", "query acc.ver", _query_accession(True)),
        _of_hits("sseqid", "subject id", lambda of: of.names),
        _of_hits("sacc", "subject acc.", lambda of: headers.accessions(of.names, False)),
        _of_hits("saccver", "subject acc.ver", lambda of: headers.accessions(of.names, True)),
        _of_hits("qtitle", "query title", _query_title),
        _of_hits("sallseqid", "subject ids", _all_subject_ids),
        _of_hits("sallacc", "subject accs.", _all_accessions),
        _of_hits("qlen", "query length", lambda of: [str(of.result.query_length)] * of.n_hits),
        _of_hits("slen", "subject length", lambda of: whole(of.subject_lengths)),
        _of_hits("stitle", "subject title", lambda of: [titles[0] for titles in of.titles]),
        _of_hits("salltitles", "subject titles", lambda of: ["<>".join(titles) for titles in of.titles]),
        *_taxon_columns("taxid", "staxid", "subject tax id", "staxids", "subject tax ids"),
        *_taxon_columns("scientific", "ssciname", "subject sci name", "sscinames", "subject sci names"),
        *_taxon_columns("common", "scomname", "subject com names", "scomnames", "subject com names"),
        *_taxon_columns("blast", "sblastname", "subject blast name", "sblastnames", "subject blast names"),
        *_taxon_columns("kingdom", "sskingdom", "subject super kingdom", "sskingdoms", "subject super kingdoms"),
        _of_hits("subject_index", "subject index", lambda of: whole(of.subjects)),
        _of_hits("iteration", "iteration", lambda of: whole(of.iterations)),
        _of_scores("score", "score", lambda of: whole(of.scores)),
        _of_scores("bitscore", "bit score", lambda of: numbers.bit_score_texts(of.numbers.bit_scores)),
        _of_scores("evalue", "evalue", lambda of: numbers.evalue_texts(of.numbers.evalues)),
        _of_scores("zscore", "z-score", lambda of: list(map(numbers.z_score_text, of.numbers.optional[2]))),
        _of_scores(
            "evalue_published", "published evalue", lambda of: numbers.evalue_texts(of.numbers.evalues_published)
        ),
        _count("qstart", "q. start", lambda of: of.query_ends[0]),
        _count("qend", "q. end", lambda of: of.query_ends[1]),
        _count("sstart", "s. start", lambda of: of.subject_ends[0]),
        _count("send", "s. end", lambda of: of.subject_ends[1]),
        Column("qseq", "query seq", lambda of: [top or headers.MISSING for top, _, _ in of.rows]),
        Column("sseq", "subject seq", lambda of: [bottom or headers.MISSING for _, _, bottom in of.rows]),
        _count("length", "alignment length", lambda of: of.alignments.length),
        Column("pident", "% identity", lambda of: _percentages(of, of.alignments.identities, 3)),
        _count("nident", "identical", lambda of: of.alignments.identities),
        _count("mismatch", "mismatches", lambda of: mismatches(of.alignments)),
        _count("positive", "positives", lambda of: of.alignments.positives),
        Column("ppos", "% positives", lambda of: _percentages(of, of.alignments.positives, 2)),
        _count("gapopen", "gap opens", lambda of: of.alignments.gap_openings),
        _count("gaps", "gaps", lambda of: of.alignments.gaps),
        Column("btop", "BTOP", _btops),
        Column("qframe", "query frame", lambda of: _frames(of, "query")),
        Column("sframe", "sbjct frame", lambda of: _frames(of, "subject")),
        Column("frames", "query/sbjct frames", _both_frames),
        _of_hits("sstrand", "subject strand", lambda of: [headers.MISSING] * of.n_hits),
        Column("cigar", "cigar", lambda of: [cigar or headers.MISSING for cigar in of.alignments.cigar_strings()]),
        Column("qcovs", "% query coverage per subject", _coverages_by_all),
        Column("qcovhsp", "% query coverage per hsp", _coverages),
        Column("scovhsp", "% subject coverage per hsp", _subject_coverages),
    ]


COLUMNS: dict[str, Column] = {column.name: column for column in _known_columns()}
"""Every column by name."""

STANDARD_COLUMNS = COLUMNS | {
    "qaccver": _of_hits("qaccver", "query acc.ver", _query_id),
    "saccver": _of_hits("saccver", "subject acc.ver", lambda of: of.names),
}
"""Columns as ``std`` has them: with whole identifiers, as blastp prints them of databases made without -parse_seqids,
so that a table can be joined with its FASTA files."""

_NO_GI = "NCBI no longer uses GI numbers; choose sseqid or qseqid"

REFUSED: dict[str, str] = {
    **dict.fromkeys(("qgi", "sgi", "sallgi"), _NO_GI),
    "qcovus": "only blastn has it; choose qcovs",
}
"""The columns of blastp 2.12 that proteins in FASTA have nothing for, and why; blastp fills them with 0, 1 or N/A."""


def choose_columns(names: Iterable[str], outfmt: str) -> list[Column]:
    """Find columns by name; ``std`` stands for twelve of them, none at all means ``std``.

    A column that is named again is not printed again, as in blastp.

    Raises
    ------
    OptionError
        If there is no such column.
    """
    chosen: dict[str, Column] = {}
    for name in list(names) or ["std"]:
        if name == "std":
            chosen.update({each: STANDARD_COLUMNS[each] for each in STANDARD if each not in chosen})
        elif name in COLUMNS:
            chosen.setdefault(name, COLUMNS[name])
        elif name.lower() in REFUSED:
            raise OptionError("outfmt", outfmt, f"no column {name}", REFUSED[name.lower()])
        elif name.startswith("delim="):
            raise OptionError("outfmt", outfmt, "no delim=", "6 and 7 are tab-separated, 10 is comma-separated")
        else:
            remedy = did_you_mean(name.lower(), [*COLUMNS, "std"], 3)
            raise OptionError("outfmt", outfmt, f"columns out of std, {', '.join(COLUMNS)}, not {name!r}", remedy)
    return list(chosen.values())


def table_rows(result: SearchResult, columns: list[Column]) -> Iterator[Iterator[tuple[str, ...]]]:
    """Fill the columns for each alignment of a result, some thousand lines at a time.

    No alignment is looked for where no column needs it, unless a hit may have several, which are lines of their own.
    """
    aligned = result.may_have_several or any(column.needs_alignment for column in columns)
    for portion in aligned_portions(result) if aligned else portions(result):
        yield zip(*[column.texts(portion) for column in columns], strict=True)
