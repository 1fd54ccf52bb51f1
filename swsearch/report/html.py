"""HTML report: one file that works offline.

It has tables to sort and filter, plots and alignments. Python writes data and a few fixed words. ``assets/report.js``
draws a query when the reader opens it. The data of a query are a block of their own, written when the query is done,
so that neither the search nor the browser holds all of them. No header becomes markup: data are JSON without a ``<``,
text is set as text, and the page's policy allows only its own two assets, by their hashes. All bytes are ASCII. Only
the block "Run" (engine, time, command line) differs between runs of equal results.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import PurePath
from string import Template
from typing import Any, ClassVar, TextIO

import numpy as np

from swsearch.blocks import FloatArray
from swsearch.errors import format_count
from swsearch.profiles import calibration
from swsearch.profiles.profile import Profile
from swsearch.report import base, headers
from swsearch.report.base import Writer
from swsearch.report.headers import hits_by_taxon, options_as_html
from swsearch.results import SearchResult
from swsearch.results.alignment_rows import letters_of
from swsearch.results.hit_batches import AlignedHitBatch, aligned_batches
from swsearch.results.table import HitTable, shown_hits
from swsearch.run_info import RunInfo
from swsearch.scoring import Scoring
from swsearch.statistics.karlin_altschul import KarlinAltschul
from swsearch.statistics.score_distribution import ScoreDistribution

MIN_BITS = 0.02
"""Lower letters cannot be seen."""

_DEFAULT_LAMBDA = 0.3176
"""Lambda of BLOSUM62, for profiles that do not state theirs."""


def frequencies_of(profile: Profile) -> FloatArray:
    """Return the frequencies of the amino acids in each position, shape (n, 20), from scores where there are none."""
    if profile.frequencies is not None:
        return profile.frequencies
    background = calibration.BACKGROUND if profile.background is None else profile.background
    unit = _DEFAULT_LAMBDA if profile.lambda_ is None else profile.lambda_
    weights = background * np.exp(unit * profile.scores[:, : calibration.N_AMINO_ACIDS].astype(np.float64))
    shares: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return shares


def make_logo(profile: Profile) -> list[tuple[str, list[float]]]:
    """Return the letters of each position, the highest first, and their heights in bits.

    A position is as high as its information, the relative entropy of its frequencies and the background; a letter has
    its share of it (T. D. Schneider and R. M. Stephens, Nucleic Acids Res. 18:6097, 1990).
    """
    frequencies = frequencies_of(profile)
    heights = frequencies * calibration.information(frequencies, profile.background)[:, None]
    order = np.argsort(-heights, axis=1, kind="stable")
    counts = (heights >= MIN_BITS).sum(axis=1).tolist()
    rounded = np.round(np.take_along_axis(heights, order, axis=1), 2).tolist()
    letters = np.array(list(calibration.AMINO_ACIDS))[order]
    return [("".join(names[:n]), values[:n]) for names, values, n in zip(letters, rounded, counts, strict=True)]


SIGNIFICANT_EVALUE = 0.001
"""Hits of a higher E-value are shown as ones that may be chance."""

_OVERVIEW = {
    "Query": "id",
    "Length": "number small-out",
    "Hits": "number phone-out",
    f"E &le; {SIGNIFICANT_EVALUE}": "number",
    "Best hit": "words phone-out",
    "Score": "number phone-out",
    "E-value": "number",
}
"""Columns of the table of all queries, with their classes."""

MAX_CELL_LETTERS = 240
"""Maximum length of a text in this table; longer ones are cut."""

SCRIPTS = (
    "alignments.js", "titles.js", "links.js", "pictures.js", "lengths.js", "dots.js", "logo.js", "ticks.js",
    "table.js", "taxa.js", "report.js",
)  # fmt: skip
"""Files of the page's script, in order."""


@dataclass(frozen=True)
class Link:
    """A link at the top of a report that a server shows.

    Parameters
    ----------
    text : str
        Its words.
    href : str
        Its address; the caller sees to it that it leads where it should.
    """

    text: str
    href: str


class HtmlWriter(Writer):
    """One self-contained page: what was searched, and for each query its hits, pictures and alignments.

    Parameters
    ----------
    stream : file object
        As of every writer.
    bar : sequence of Link
        Shown at the top; none in a file, which leads nowhere.
    subjects_url : str or None
        Where ``?query=1&hits=1,3,4`` gives whole subjects of a query as FASTA, both counted from 1 and hits in the
        report's order; hundreds of hits are asked for as ranges, ``1-400,403``. None in a file, which has but what
        is aligned.
    """

    needs_distribution = True
    needs_checksums = True
    without_script: ClassVar = (
        "JavaScript is off: this page shows the queries, but no hits and pictures. Their data are in this file all "
        "the same. <code>--outfmt 0</code> writes a report that needs no JavaScript."
    )
    """Note for browsers without JavaScript, as HTML."""

    def __init__(self, stream: TextIO, *, bar: Sequence[Link] = (), subjects_url: str | None = None) -> None:
        super().__init__(stream)
        self._bar = bar
        self._subjects_url = subjects_url
        self._index: list[dict[str, Any]] = []
        self._rows: list[list[str]] = []

    def begin(self, run: RunInfo) -> None:
        """Write the page's head and the search."""
        super().begin(run)
        head = Template(_asset("head.html")).substitute(
            policy=content_policy(),
            version=html_text(run.version),
            searched=html_text(_search_names(run)),
            style=_style(),
            bar=_bar(self._bar),
            mode=run.mode,
            subjects=f"{run.database_subjects:,}",
            residues=f"{run.database_residues:,} {_database_unit(run)}",
            options=options_as_html(run),
            without_script=self.without_script,
        )
        self._stream.write(head)

    def write(self, result: SearchResult) -> None:
        """Write the data of one query."""
        data = _query_data(result)
        parts = base.with_hits(data, map(_hit_data, aligned_batches(result)))
        self._stream.writelines(_data(f"data-{len(self._index)}", parts))
        hits = shown_hits(result.table)
        self._index.append({"id": data["id"], "length": data["length"], "hits": len(hits)})
        self._rows.append(_overview_row(data, hits))

    def end(self) -> None:
        """Write parameters, run and script."""
        run = self._run
        self._stream.write(_overview(self._rows))
        self._stream.write(_definitions("parameters", "Parameters", _parameters(run, self._index)))
        if run.execution is not None:
            self._stream.write(_definitions("run", "Run", _execution(run)))
        self._stream.write("</main>\n<footer><p>Made by swsearch. Works offline; loads nothing.</p></footer>\n")
        index = {
            "queries": self._index,
            "subjects": self._subjects_url,
            "significant": SIGNIFICANT_EVALUE,
            **_alphabet(run.scoring),
        }
        self._stream.writelines(_data("index", [base.encode(index)]))
        self._stream.write(f"<script>{_script()}</script>\n</body>\n</html>\n")


@cache
def _asset(name: str) -> str:
    return (files("swsearch.report") / "assets" / name).read_text(encoding="ascii")


def _style() -> str:
    return "\n" + _asset("report.css")


@cache
def _script() -> str:
    # one function around all, so that nothing is global
    return '\n"use strict";\n(() => {' + "".join("\n" + _asset(name) for name in SCRIPTS) + "})();\n"


def content_policy() -> str:
    """Return the policy of a report, which allows its own style and script and nothing else.

    Returns
    -------
    policy : str
        As it stands in every report, and as a server sends it with one: a value of ``Content-Security-Policy``.
    """
    style, script = _hash(_style()), _hash(_script())
    return f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"


def _search_names(run: RunInfo) -> str:
    """Return the names of the query and database files; their paths are among the parameters."""
    names = ", ".join(PurePath(path).name or path for path in run.database_name.split(", "))
    queries = "" if run.queries == "-" else PurePath(run.queries).name
    return f"{queries} against {names}" if queries and names else queries or names or "swsearch report"


def _bar(links: Sequence[Link]) -> str:
    if not links:
        return ""
    items = "\n".join(f'<a href="{html_text(link.href)}">{html_text(link.text)}</a>' for link in links)
    return f'<nav class="bar" aria-label="This server">\n{items}\n</nav>\n'


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("ascii")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def html_text(value: object) -> str:
    """Return text that is no markup, in ASCII."""
    return escape(headers.one_line(str(value))).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _data(identifier: str, parts: Iterable[str]) -> Iterator[str]:
    """Yield a block of JSON that holds nothing that could end it: no ``<``, so no ``</script>`` and no ``<!--``."""
    yield f'<script type="application/json" id="{identifier}">'
    for text in parts:
        yield text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    yield "</script>\n"


def _query_data(result: SearchResult) -> dict[str, Any]:
    """Describe a query, but for its hits."""
    statistics = result.statistics
    note = headers.statistics_note(result)
    if statistics is not None and not note:
        note = f"E-values: {statistics.name}"
    if statistics is not None and result.effective_residues != result.database_residues:
        note += f"; they refer to a database of {result.effective_residues:,} residues"
    if (loc := result.options.get("query_loc")) is not None:
        note = f"residues {loc} of the query, from whose first one positions count here; {note}"
    if result.first_iterations is not None:
        note = "; ".join(filter(None, [_iterations_note(result), note]))
    return {
        "id": headers.identifier(result.query_id),
        "title": headers.one_line(result.query_description).strip(),
        "length": int(result.query_length),
        **({} if result.program == "blastp" else {"program": result.program}),
        "note": headers.one_line(note),
        "sequence": "" if result.has_query_frames else letters_of(result.hits).query,
        **_taxa_data(result),
        "hits": [],
        "distribution": None if result.distribution is None else _distribution_data(result.distribution),
        **({} if result.profile is None else {"profile": _profile_data(result.profile)}),
    }


def _overview_row(data: dict[str, Any], hits: HitTable) -> list[str]:
    """Return a query's cells in the table of all queries, as HTML."""
    cells = [_cut(data["id"]) + _title(data["title"]), f"{data['length']:,}", f"{len(hits):,}"]
    if not len(hits):
        return [*cells, "", "", "", ""]
    evalues, description = hits.statistics.evalues, hits.headers.descriptions[0].partition(headers.MERGED)[0]
    best = _cut(headers.identifier(hits.headers.identifiers[0])) + _title(headers.one_line(description).strip())
    has_evalues = not np.isnan(evalues[0])
    significant = f"{(evalues <= SIGNIFICANT_EVALUE).sum():,}" if has_evalues else ""
    evalue = base.number_texts(evalues[:1], "evalue")[0] if has_evalues else ""
    return [*cells, significant, best, str(hits.scores[0]), evalue]


def _cut(text: str) -> str:
    return html_text(text if len(text) <= MAX_CELL_LETTERS else text[:MAX_CELL_LETTERS] + "\u2026")


def _title(text: str) -> str:
    return f' <span class="title">{_cut(text)}</span>' if text else ""


def _overview(rows: list[list[str]]) -> str:
    """Return the table of all queries, which needs no script, without columns that are empty."""
    shown = [k for k in range(len(_OVERVIEW)) if any(row[k] for row in rows)]
    names, kinds = list(_OVERVIEW), list(_OVERVIEW.values())
    lines = ["".join(f'<th scope="col" class="{kinds[k]}">{names[k]}</th>' for k in shown)]
    for row in rows:
        cells = [f'<td class="{kinds[k]}">{row[k]}</td>' for k in shown[1:]]
        lines.append(f'<th scope="row" class="id">{row[0]}</th>' + "".join(cells))
    body = "".join(f"<tr>{line}</tr>\n" for line in lines[1:])
    return (
        f'<section id="all">\n<h2>{format_count(len(rows), "query", "queries")}</h2>\n'
        f"<table>\n<thead><tr>{lines[0]}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</section>\n"
    )


def _iterations_note(result: SearchResult) -> str:
    """Return the number of subjects that each iteration included."""
    counts = ", ".join(
        f"{step.iteration} included {format_count(step.included, 'subject')} ({step.new:,} new)"
        for step in result.steps
    )
    return f"Iteration {counts}; {'converged' if result.converged else 'not converged'}"


def _taxa_data(result: SearchResult) -> dict[str, Any]:
    """Return how many hits each taxon has, and how many hits have none; nothing where no hit has any."""
    counts = [
        {
            "taxid": each.taxon.taxid,
            "name": headers.one_line(each.taxon.scientific),
            "common": headers.one_line(each.taxon.common),
            "kingdom": headers.one_line(each.taxon.kingdom),
            "hits": each.n_hits,
            "evalue": base.finite(each.evalue),
        }
        for each in hits_by_taxon(result.table)
    ]
    taxa_of_hits = shown_hits(result.table).headers.taxa or ()
    return {"taxa": counts, "withoutTaxa": sum(not taxa for taxa in taxa_of_hits)} if counts else {}


def _profile_data(profile: Profile) -> dict[str, Any]:
    return {"source": headers.one_line(profile.source), "logo": [list(position) for position in make_logo(profile)]}


def _hit_data(batch: AlignedHitBatch) -> list[str]:
    """Return the hits of a batch."""
    statistics = batch.hit_statistics
    bits, evalues = base.floats(statistics.bit_scores), base.floats(statistics.evalues)
    of_alignments = (bits, evalues) if batch.is_single else None
    columns: dict[str, Sequence[str | int]] = {
        "id": base.strings(headers.subject_names(batch)),
        "titles": base.lists(map(base.strings, headers.subject_titles(batch))),
        "length": batch.subject_lengths.tolist(),
        "score": batch.hit_scores.tolist(),
        "bits": bits,
        "evalue": evalues,
        "z": base.floats(statistics.z_scores),
        "hsps": base.lists(batch.by_hit(_hsp_data(batch, of_alignments))),
    }
    return base.objects(columns)


def _hsp_data(batch: AlignedHitBatch, known_texts: tuple[list[str], list[str]] | None) -> list[str]:
    """Return alignments without what the page can work out: rows and middle line follow from these.

    Masked residues are in lower case; a page shows them so and scores them as X. Bit scores and E-values are given
    where they are those of the hits. Of translated DNA, and of a part of a query, alignments have their ends and
    frames; a query of DNA has its aligned part in each.
    """
    alignments, statistics = batch.alignments, batch.statistics
    bits, evalues = known_texts or (base.floats(statistics.bit_scores), base.floats(statistics.evalues))
    columns: dict[str, Sequence[str | int]] = {
        "q": alignments.query_start.tolist(),
        "s": alignments.subject_start.tolist(),
        "cigar": base.printable(alignments.cigar_strings()),
        "subject": base.printable(batch.subject_parts),
        "identities": alignments.identities.tolist(),
        "positives": alignments.positives.tolist(),
        "score": alignments.score.tolist(),
        "bits": bits,
        "evalue": evalues,
    }
    absent = {}
    if not (is_nan := np.isnan(statistics.evalues_published)).all():
        columns["published"], absent["published"] = base.floats(statistics.evalues_published), is_nan
    if batch.result.first_iterations is not None:
        columns["iteration"] = batch.iterations[batch.hit_of_line].tolist()
    if batch.is_placed:
        columns |= _on_records(batch)
    if batch.result.has_query_frames:
        columns["q"] = [0] * len(batch)
        columns["query"] = base.printable([row.replace("-", "") for row in batch.rows[0]])
    else:
        query, queries = batch.query, batch.queries
        is_same = np.array([letters == query for letters in queries])
        if not is_same.all():
            columns["query"], absent["query"] = base.printable(queries), is_same
    return base.objects(columns, absent)


def _on_records(batch: AlignedHitBatch) -> dict[str, Sequence[str | int]]:
    """Return where alignments lie in the whole records, as BLAST counts, and their frames; 0 of proteins."""
    pairs = {
        "queryEnds": batch.query_ends,
        "subjectEnds": batch.subject_ends,
        "frames": (batch.query_frames, batch.subject_frames),
    }
    return {name: [f"[{a},{b}]" for a, b in zip(*map(list, both), strict=True)] for name, both in pairs.items()}


def _distribution_data(distribution: ScoreDistribution) -> dict[str, Any]:
    starts, counts = distribution.histogram()
    median = distribution.scores[np.searchsorted(np.cumsum(distribution.counts), distribution.n_subjects / 2)]
    return {
        "subjects": distribution.n_subjects,
        "below": distribution.n_below,
        "median": int(median),
        "lowest": int(distribution.scores[0]),
        "highest": int(distribution.scores[-1]),
        "first": int(distribution.edges[0]),
        "width": distribution.width,
        "starts": starts.tolist(),
        "counts": counts.tolist(),
        "end": int(distribution.edges[-1]),
        "expected": None
        if distribution.expected is None
        else [float(f"{value:.5g}") for value in distribution.expected],
    }


def _alphabet(scoring: Scoring) -> dict[str, Any]:
    """Return the letters that score above 0 with each letter, for the middle lines."""
    letters, scores = scoring.matrix.alphabet.letters, scoring.matrix.scores
    positive = {
        a: "".join(b for k, b in enumerate(letters) if scores[place, k] > 0) for place, a in enumerate(letters)
    }
    return {"positive": positive}


def _parameters(run: RunInfo, index: list[dict[str, Any]]) -> list[tuple[str, str]]:
    scoring, statistics = run.scoring, run.statistics
    described = headers.statistics_name(statistics, run.program)
    if isinstance(statistics, KarlinAltschul):
        described += "; " + ", ".join(f"{name} {value}" for name, value in statistics.parameters().items())
    threshold = "" if run.evalue is None else f", of an E-value of at most {run.evalue:g}"
    queries = f"{run.queries}: " if run.queries and run.queries != "-" else ""
    size = f"{run.database_subjects:,} subjects, {run.database_residues:,}"
    letters = "nucleotides" if run.program in ("blastx", "tblastx") else "residues"
    rows = [
        ("Program", f"swsearch {run.version}"),
        ("Queries", f"{queries}{len(index):,}, {sum(query['length'] for query in index):,} {letters}"),
        ("Hits", f"{sum(query['hits'] for query in index):,}"),
        ("Database", f"{run.database_name}: {size} {_database_unit(run)}"),
        ("Alignment", f"{run.mode}, exact"),
        ("Matrix", scoring.matrix.name),
        ("Gap of k residues", f"{scoring.gap_open} + k x {scoring.gap_extend}"),
        ("Hits reported", f"at most {run.max_hits:,} a query{threshold}"),
        ("Statistics", described),
    ]
    if codes := headers.translated_codes(run):
        rows.append(("Translation", ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in codes.items())))
    if run.options:
        rows.append(("Options", headers.describe_options(run.options)))
    return rows + [(f"SHA-256, {each.what}", f"{each.sha256} {each.path}") for each in run.checksums]


def _database_unit(run: RunInfo) -> str:
    return "nucleotides" if run.database_genetic_code is not None else "residues"


def _execution(run: RunInfo) -> list[tuple[str, str]]:
    execution = run.execution
    assert execution is not None
    return [
        ("Engine", execution.engine),
        ("Begun", execution.started.isoformat(sep=" ", timespec="seconds")),
        ("Seconds", f"{execution.seconds():.2f}" + (", this report included" if execution.ended is None else "")),
        ("Command", execution.command),
    ]


def _definitions(identifier: str, heading: str, rows: list[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>\n" for name, value in rows)
    return f'<section id="{identifier}" class="facts">\n<h2>{heading}</h2>\n<dl>\n{items}</dl>\n</section>\n'
