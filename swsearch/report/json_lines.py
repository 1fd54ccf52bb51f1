"""JSON lines for programs: one object per query, one per line."""

from __future__ import annotations

from typing import Any

import numpy as np

from swsearch.report import base, headers
from swsearch.report.base import Writer
from swsearch.report.headers import JSON_KEY
from swsearch.results import SearchResult
from swsearch.results.fields import HIT_FIELDS, fields_in
from swsearch.results.hit_batches import AlignedHitBatch, aligned_batches
from swsearch.run_info import OptionValues
from swsearch.statistics.null_model import FittedStatistics


class JsonLinesWriter(Writer):
    """One JSON object per query, one line per object.

    An object holds ``query`` (id, description, length), ``database`` (name, subjects, residues), ``parameters``
    (matrix, gap_open, gap_extend, mode, statistics, effective_residues; filters, masks and the like where they were
    asked for, named as in Python), ``options`` (all of them, as ``--config`` takes them) and ``hits``, best first.
    Coordinates of a hit (query_start, query_end,
    subject_start, subject_end) and ``subject.index`` count from 0, and ends are not included:
    ``query_sequence[query_start:query_end]`` is what was aligned. E-values and bit scores have full precision; they
    and ``statistics`` are null where there are no statistics. Where statistics were fitted, ``parameters`` has
    ``fit`` too (distribution, subjects, outliers, by_length: mean and standard_deviation of scores at the lengths
    between which they are interpolated; in local mode lambda and k), a hit has ``z_score``, and ``evalue_published``
    where there are published statistics too; bit scores are null outside local mode. Where there are no statistics,
    ``no_evalue_reason`` says why. Where several alignments per hit were asked for,
    ``further_alignments`` of a hit holds
    those after the best, which is the hit's own, with the same keys. Where a search had iterations, ``iterations``
    says which was the last, whether the query converged, and how many subjects each included in the next profile, and
    how many of them were new; ``subject.iteration`` is the first that included it. Where the query or the database is
    DNA, its coordinates and lengths are in nucleotides of the given strand, ``query_frame`` and ``subject_frame`` say
    how it was read, and ``parameters`` has ``program`` (blastx, tblastn or tblastx), ``genetic_code`` and
    ``database_code``; hits in one record are one, as are several alignments. Where the database knows taxa,
    ``subject`` has ``taxids`` and ``scientific_names``, and where hits have any, ``taxa`` counts them (taxid,
    scientific_name, hits, and evalue, the best), the most frequent first. Headers are as they were, merged ones
    (0x01) included; bytes that were not UTF-8 are U+FFFD. All is ASCII, by escapes.
    """

    def write(self, result: SearchResult) -> None:
        """Write the object of one query."""
        # ASCII, because readers that split lines as Python does would split at U+2028 or U+0085 too.
        hits = map(_hits, aligned_batches(result))
        self._stream.writelines(base.with_hits(_result_object(result), hits))
        self._stream.write("\n")


def _result_object(result: SearchResult) -> dict[str, Any]:
    """Describe a query's search, but for its hits."""
    scoring, statistics = result.scoring, result.statistics
    fit: dict[str, Any] = {}
    if isinstance(statistics, FittedStatistics):
        fit["fit"] = statistics.parameters()
    elif result.no_evalue_reason:
        fit["no_evalue_reason"] = headers.encodable(result.no_evalue_reason)
    return {
        "query": {
            "id": headers.encodable(result.query_id),
            "description": headers.encodable(result.query_description),
            "length": int(result.query_length),
        },
        "database": {
            "name": headers.encodable(result.database_name),
            "subjects": int(result.database_subjects),
            "residues": int(result.database_residues),
        },
        "parameters": {
            "matrix": headers.encodable(scoring.matrix.name),
            "gap_open": int(scoring.gap_open),
            "gap_extend": int(scoring.gap_extend),
            "mode": result.mode,
            "statistics": headers.statistics_name(statistics, result.program) if statistics else None,
            "effective_residues": int(result.effective_residues),
            **headers.translated_codes(result),
            **result.options,
            **fit,
        },
        **({} if result.run is None else {JSON_KEY: _encodable(result.run.settings)}),
        **({} if result.first_iterations is None else {"iterations": _iterations(result)}),
        **headers.query_member(result.table),
        "hits": [],
    }


def _encodable(settings: OptionValues) -> OptionValues:
    return {name: headers.encodable(each) if isinstance(each, str) else each for name, each in settings.items()}


def _iterations(result: SearchResult) -> dict[str, Any]:
    """Return the numbers of subjects that iterations included."""
    return {
        "last": int(result.iteration),
        "converged": bool(result.converged),
        "included": [step.included for step in result.steps],
        "new": [step.new for step in result.steps],
    }


def _hits(batch: AlignedHitBatch) -> list[str]:
    """Return the hits of a batch."""
    subjects = {
        "id": base.strings(headers.all_encodable(batch.identifiers)),
        "description": base.strings(headers.all_encodable(batch.descriptions)),
        "length": batch.subject_lengths.tolist(),
        "index": batch.subjects.tolist(),
        **headers.subject_members(batch),
    }
    if batch.result.first_iterations is not None:
        subjects["iteration"] = batch.iterations.tolist()
    alignments = batch.by_hit(_alignments(batch))
    further = [""] * batch.n_hits
    if batch.result.may_have_more_hsps or not batch.is_single:
        further = [f',"further_alignments":[{",".join(others)}]' for _, *others in alignments]
    hits = zip(base.objects(subjects), alignments, further, strict=True)
    return [f'{{"subject":{subject},{best[1:-1]}{others}}}' for subject, (best, *_), others in hits]


def _alignments(batch: AlignedHitBatch) -> list[str]:
    """Return the alignments of a batch."""
    fields = fields_in("json", batch.result.program)
    columns = {field.name: field.cells(batch, base.floats, base.printable) for field in fields}
    absent = {name: np.isnan(HIT_FIELDS[name].values(batch)) for name in ("z_score", "evalue_published")}
    return base.objects(columns, absent)
