"""SAM and PAF of a search, and their lines, which pairs share.

The subject is the reference (target), the query the read. Runs of pairs, equal or not, are ``M``, which every reader
of these formats knows; the SAM tag MD marks the differences. Query residues outside the alignment are soft-clipped
(``S``); subject residues outside it are not part of a SAM line. Strands are forward, except in PAF of translated DNA.

SAM was made for nucleotides. Its text allows every letter except ``*``, so proteins are valid. Readers get names,
places, CIGAR and tags right. Those that hold reads as BAM does (samtools, pysam) turn amino acids into N. MD is left
out for proteins, since Biopython reads only bases in it.

Tags of a search are those of BLAST's own SAM (``blastn -outfmt 17``): AS (raw score), EV (E-value), NM
(differences), PI (per cent identity) and BS (bit score). diamond has the raw score in ZR, the bit score in AS and
the E-value in ZE. Readers of BAM keep numbers in 32 bits: E-values below 1e-45 become 0 there.
"""

from __future__ import annotations

import io
import math
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np

from swsearch.alignment import PairAlignment
from swsearch.report import base, headers
from swsearch.report.base import Writer
from swsearch.results import SearchResult
from swsearch.results.hit_batches import AlignedHitBatch, aligned_batches
from swsearch.run_info import Program, RunInfo
from swsearch.translation.genetic_codes import CODON

UNMAPPED, SECONDARY = 4, 256
"""Bits of SAM's flag."""

NO_QUALITY = 255
"""Mapping quality that is not available."""

NOT_IN_REFERENCE = re.compile(r"^[*=]|[^0-9A-Za-z!#$%&+./:;?@^_|~*=-]")
NOT_IN_READ = re.compile(r"[^!-?A-~]")
"""Characters that the SAM specification (sections 1.2.1 and 1.4) forbids in names of references and of reads."""

READ_NAME_LENGTH = 254
"""Maximum number of characters of a read's name."""

NO_PROTEIN_IN_BAM = "protein sequences, of which BAM and what reads SAM as it does keep no letters"
"""Reason why proteins are unsupported, in the words of an error."""

SPOOL_BYTES = 64 << 20
"""Text that is kept in memory until the end; more goes to a temporary file."""


class LineValues(NamedTuple):
    """Values of a line: those of a `PairAlignment`, and the lengths of both sequences.

    Places and lengths are nucleotides where a sequence is translated DNA, of which each column has 3.
    """

    score: float
    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    length: int
    identities: int
    gaps: int
    cigar: str
    query_length: int
    subject_length: int
    strand: str = "+"
    nucleotides: int = 1

    @classmethod
    def from_pair(cls, pair: PairAlignment) -> LineValues:
        """Return it of an alignment."""
        return cls(
            pair.scoring.to_display(pair.score), pair.query_start, pair.query_end, pair.subject_start,
            pair.subject_end, pair.length, pair.identities, pair.gaps, pair.cigar_string,
            len(pair.query), len(pair.subject),
        )  # fmt: skip

    @property
    def has_pairs(self) -> bool:
        """Whether any column pairs two residues."""
        return self.length > self.gaps

    @property
    def differences(self) -> int:
        """The edit distance of the aligned parts: pairs of unlike letters, and residues opposite a gap."""
        return self.length - self.identities


def line_values(batch: AlignedHitBatch, *, on_part: bool = False) -> Iterator[LineValues]:
    """Yield what lines say of a batch's alignments; of a part of the query with places on it, or on the whole."""
    alignments, of = batch.alignments, batch.result
    spans = (alignments.query_start, alignments.query_end) if on_part else batch.query_spans
    lengths = np.full(len(batch), of.query_length) if on_part else batch.query_lengths
    backwards = (batch.query_frames < 0) != (batch.subject_frames < 0)
    columns = zip(
        alignments.score.tolist(),
        *(ends.tolist() for ends in spans),
        *(ends.tolist() for ends in batch.subject_spans),
        alignments.length.tolist(),
        alignments.identities.tolist(),
        alignments.gaps.tolist(),
        alignments.cigar_strings(),
        lengths.tolist(),
        batch.subject_lengths[batch.hit_of_line].tolist(),
        np.where(backwards, "-", "+").tolist(),
        [CODON if of.has_query_frames or of.has_subject_frames else 1] * len(batch),
        strict=True,
    )
    return map(LineValues._make, columns)


def _score_tag(score: float) -> str:
    """Return the tag of a score; of gap costs that are fractions it is one."""
    return f"AS:i:{score}" if isinstance(score, int) else f"AS:f:{score}"


def sam_line(values: LineValues, read: str, reference: str, flag: int, letters: str, *tags: str) -> str:
    """Return a SAM line, whose first tags are AS and NM; without a column of two residues, the read is unmapped."""
    score = _score_tag(values.score)
    if not values.has_pairs:
        return f"{read}\t{flag | UNMAPPED}\t*\t0\t{NO_QUALITY}\t*\t*\t0\t0\t{letters or '*'}\t*\t{score}\n"
    after = values.query_length - values.query_end
    cigar = f"{f'{values.query_start}S' if values.query_start else ''}{values.cigar}{f'{after}S' if after else ''}"
    place = f"{reference}\t{values.subject_start + 1}\t{NO_QUALITY}\t{cigar}"
    own = f"{read}\t{flag}\t{place}\t*\t0\t0\t{letters}\t*", score, f"NM:i:{values.differences}"
    return "\t".join((*own, *tags)) + "\n"


def paf_line(values: LineValues, query: str, subject: str, *tags: str) -> str:
    """Return a pair's PAF line; ``tags`` stand between NM and cg."""
    if not values.has_pairs:
        nothing = "0\t0\t*\t*\t0\t0\t0\t0\t0\t0"
        return "\t".join((f"{query}\t{values.query_length}\t{nothing}\t{_score_tag(values.score)}", *tags)) + "\n"
    places = (
        f"{query}\t{values.query_length}\t{values.query_start}\t{values.query_end}\t{values.strand}\t"
        f"{subject}\t{values.subject_length}\t{values.subject_start}\t{values.subject_end}"
    )
    own = f"{_score_tag(values.score)}\tNM:i:{values.differences}"
    counts = f"{values.identities * values.nucleotides}\t{values.length * values.nucleotides}\t{NO_QUALITY}\t{own}"
    return "\t".join((places, counts, *tags, f"cg:Z:{values.cigar}")) + "\n"


def md_tag(pair: PairAlignment) -> str:
    """Return SAM's MD: lengths of runs of identities, unlike subject letters, deleted ones after ``^``."""
    top, _, bottom = (np.frombuffer(row.encode("ascii"), dtype=np.uint8) for row in pair.rows())
    has_subject = bottom != ord("-")
    top, bottom = top[has_subject], bottom[has_subject]
    at = np.flatnonzero(pair.differing_columns[has_subject])
    letters = bottom[at].tobytes().decode("ascii")
    parts: list[str] = []
    begin, deleting = 0, False
    for column, letter, deleted in zip(at.tolist(), letters, (top[at] == ord("-")).tolist(), strict=True):
        if not (deleted and deleting and column == begin):
            parts.append(f"{column - begin}^" if deleted else str(column - begin))
        parts.append(letter)
        begin, deleting = column + 1, deleted
    return "".join([*parts, str(len(bottom) - begin)])


def _score_tags(batch: AlignedHitBatch) -> list[list[str]]:
    """Return the tags EV, PI and BS of each line; without statistics EV or BS are left out."""
    alignments, statistics = batch.alignments, batch.statistics
    identities = base.number_texts(base.percentages(alignments.identities, alignments.length), ".2f")
    columns = zip(statistics.evalues.tolist(), identities, statistics.bit_scores.tolist(), strict=True)
    return [
        [*_float_tag("EV", evalue), f"PI:f:{identity}", *_float_tag("BS", bits)] for evalue, identity, bits in columns
    ]


def _float_tag(name: str, value: float) -> list[str]:
    return [f"{name}:f:{value:g}"] if math.isfinite(value) else []


class SamWriter(Writer):
    """SAM 1.6: one line per alignment; as in BLAST's SAM, a query that found nothing has none.

    The header comes first and names the subjects that were hit, with length and (DS) title, so that all is written at
    the end; a whole database's names would be most of the file. A query's best alignment is its primary line, all
    others are marked secondary, and have ``*`` for the query's letters, as the specification recommends.

    A long search shall not fail for a name: characters that SAM does not allow become ``_``, names of queries are
    cut at 254, and a further subject of a name that is taken has its place in the database after a ``#``. ``*`` in
    a query becomes ``X``. DS has the subject's header as it was.
    """

    programs: ClassVar[tuple[Program, ...]] = ("blastp",)
    unsupported_remedy: ClassVar[str] = "use --outfmt paf, or a table with the columns qframe, sframe and cigar"

    def __init__(self, stream: IO[Any]) -> None:
        super().__init__(stream)
        self._lines: IO[str] = io.StringIO()  # a writer that never begins holds no file
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._references: list[str] = []

    def begin(self, run: RunInfo) -> None:
        """Write nothing: the header names the subjects that were hit."""
        super().begin(run)
        self._lines = tempfile.SpooledTemporaryFile(SPOOL_BYTES, "w+", encoding="utf-8", newline="\n")  # noqa: SIM115

    def write(self, result: SearchResult) -> None:
        """Keep the lines of one query."""
        read = NOT_IN_READ.sub("_", headers.identifier(result.query_id))[:READ_NAME_LENGTH]
        flag = 0
        for batch in aligned_batches(result):
            lines = []
            query = batch.query.upper().replace("*", "X")
            references = batch.of_lines(self._references_of(batch))
            rows = zip(line_values(batch, on_part=True), references, _score_tags(batch), strict=True)
            for aligned, reference, tags in rows:
                lines.append(sam_line(aligned, read, reference, flag, "*" if flag else query, *tags))
                flag = SECONDARY
            self._lines.write("".join(lines))

    def end(self) -> None:
        """Write the header, and then the stored lines."""
        run = self._run
        threshold = "" if run.evalue is None else f"; E <= {run.evalue:g}"
        options = f"; {headers.describe_options(run.options)}" if run.options else ""
        how = (
            f"search of {run.database_name}, {run.database_subjects} subjects, {run.database_residues} residues; "
            f"{run.mode} alignment; {run.scoring.describe()}{threshold}; at most {run.max_hits} subjects a query"
            f"{options}; {NO_PROTEIN_IN_BAM}"
        )
        self._stream.write("@HD\tVN:1.6\tSO:unsorted\tGO:query\n")
        self._stream.writelines(self._references)
        # in a field of @PG rather than in @CO, whose free text Biopython does not read
        self._write_lines(f"@PG\tID:swsearch\tPN:swsearch\tVN:{run.version}\tDS:{headers.one_line(how)}")
        self._lines.seek(0)
        shutil.copyfileobj(self._lines, self._stream)

    def discard(self) -> None:
        """Remove the stored lines."""
        self._lines.close()

    def _references_of(self, batch: AlignedHitBatch) -> list[str]:
        """Return the names of a batch's subjects, and keep the header lines of those that are new."""
        subjects = batch.subjects.tolist()
        texts = zip(batch.identifiers, batch.descriptions, strict=True)
        columns = zip(subjects, headers.subject_names(batch), batch.subject_lengths.tolist(), texts, strict=True)
        for subject, identifier, length, header in columns:
            if subject in self._names:
                continue
            name = self._names[subject] = self._new_name(identifier, subject)
            if length:  # a reference without residues has no place in SAM, and nothing aligns to it
                title = headers.one_line(" ".join(header)).strip() or base.MISSING
                self._references.append(f"@SQ\tSN:{name}\tLN:{length}\tDS:{title}\n")
        return [self._names[subject] for subject in subjects]

    def _new_name(self, identifier: str, subject: int) -> str:
        """Return a name that no other subject has."""
        name = NOT_IN_REFERENCE.sub("_", identifier)
        if name in self._taken:
            name = f"{name}#{subject}"
        while name in self._taken:
            name += "#"
        self._taken.add(name)
        return name


class PafWriter(Writer):
    """One line per alignment: coordinates are 0-based half-open, the block length counts gaps.

    Tags are tp (P for a query's best alignment, S for the others, as minimap2 has it), AS, NM, EV, PI,
    BS and cg (CIGAR). A query that found nothing has no line, as with minimap2.

    Where the query or the subjects are DNA, coordinates are in nucleotides of the given strand, the strand is the one
    that was read, and columns 10 and 11 count nucleotides, cg and the tags codons, all as miniprot has it.
    """

    programs: ClassVar[tuple[Program, ...]] = ("blastp", "blastx", "tblastn")
    unsupported_remedy: ClassVar[str] = "use a table with the column frames"

    def write(self, result: SearchResult) -> None:
        """Write the lines of one query."""
        query = headers.identifier(result.query_id)
        rank = "tp:A:P"
        for batch in aligned_batches(result):
            lines = []
            names = batch.of_lines(headers.subject_names(batch))
            for aligned, subject, tags in zip(line_values(batch), names, _score_tags(batch), strict=True):
                lines.append(paf_line(aligned, query, subject, rank, *tags))
                rank = "tp:A:S"
            self._stream.write("".join(lines))
