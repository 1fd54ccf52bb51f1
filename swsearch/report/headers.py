"""Printed identifiers and headers, and descriptions of searches.

Any FASTA header fits one cell of one line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape, unescape
from typing import Any

from swsearch.db.name_lookup import names_of
from swsearch.db.taxonomy import Taxon
from swsearch.errors import InputError, printable
from swsearch.report.base import MISSING, Writer, encode, finite
from swsearch.results import HitTable, SearchResult
from swsearch.results.hit_batches import HitBatch
from swsearch.results.table import shown_hits
from swsearch.run_info import ActiveOptions, OptionValues, Program, RunInfo
from swsearch.statistics.karlin_altschul import KarlinAltschul, Statistics
from swsearch.statistics.null_model import FitSettings, FittedStatistics

_NOT_TBLASTX = ", for alignments with gaps; tblastx has other constants, for alignments without gaps"

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, for bytes that were not UTF-8; no encoding can write them."""

MERGED = "\x01"
"""Separator of the headers of identical sequences that NCBI merged into one record."""


def encodable(text: str) -> str:
    """Replace lone surrogates, which no stream can encode, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Replace each control character and line end by a blank."""
    return text if text.isascii() and text.isprintable() else printable(encodable(text), " ")


def query_title(result: SearchResult) -> str:
    """Return the query's whole header, on one line."""
    return one_line(f"{result.query_id} {result.query_description}").strip()


def identifier(text: str) -> str:
    """Return an identifier as it is printed: the first of merged ones, no control characters, never empty."""
    return one_line(text.partition(MERGED)[0]).strip() or MISSING


def accessions(identifiers: Sequence[str], with_version: bool) -> list[str]:
    """Return the accessions of identifiers, an identifier itself where it has none; see `swsearch.db.name_lookup`."""
    parts = map(names_of, identifiers)
    return [each.versioned if with_version else each.accession for each in parts]


def titles(identifier: str, description: str) -> list[str]:
    """Return the titles that a header was merged from, identifier and description together; at least one.

    blastp calls this the title for databases that were made without ``-parse_seqids`` (with it, the title lacks
    the identifier; with ``-subject`` it prints N/A).
    """
    parts = [one_line(part).strip() for part in f"{identifier} {description}".split(MERGED)]
    return [part for part in parts if part] or [MISSING]


def describe_options(options: ActiveOptions) -> str:
    """Return the active options of a search on one line: ``min_identity 90, query_mask tantan``."""
    return one_line(", ".join(f"{name} {value}" for name, value in options.items()))


def statistics_name(statistics: Statistics | FitSettings | None, program: Program) -> str:
    """Return the name of the statistics, and that they are not tblastx's; ``none`` without any."""
    if statistics is None:
        return "none"
    return statistics.name + (_NOT_TBLASTX if _differs_from_tblastx(statistics, program) else "")


def _differs_from_tblastx(statistics: Statistics | FitSettings, program: Program) -> bool:
    return program == "tblastx" and isinstance(statistics, KarlinAltschul)


def statistics_note(result: SearchResult) -> str:
    """Return a line on missing E-values, or on their source; empty if they are as BLAST's."""
    if result.statistics is None:
        return one_line(result.why_no_statistics)
    if isinstance(result.statistics, FittedStatistics):
        return f"E-values: {result.statistics.name}; {result.statistics.describe()}"
    if _differs_from_tblastx(result.statistics, result.program):
        return f"E-values: {statistics_name(result.statistics, result.program)}"
    return ""


def translated_codes(source: RunInfo | SearchResult) -> dict[str, Any]:
    """Return program and genetic codes of a translated search; empty for proteins."""
    if source.program == "blastp":
        return {}
    codes = {"genetic_code": source.genetic_code, "database_code": source.database_genetic_code}
    return {"program": source.program, **{name: code for name, code in codes.items() if code is not None}}


def provenance(run: RunInfo) -> dict[str, Any]:
    """Describe a run in JSON values: everything that decides the content of a file, and nothing else.

    No time, host, engine or number of threads: the output has the same bytes whatever these are.

    Returns
    -------
    dict
        ``program``, ``version``; ``database`` (name, subjects, residues, and the sources that it was built from, with
        their SHA-256); ``parameters`` (mode, matrix, gap_open, gap_extend, evalue, max_hits, effective_residues,
        of translated DNA program, genetic_code and database_code, and what was asked for besides: masks, filters,
        max_alignments);
        ``statistics`` (name and parameters), or null.
    """
    scoring, statistics = run.scoring, run.statistics
    described: dict[str, Any] | None = None
    if statistics is not None:
        constants = statistics.parameters() if isinstance(statistics, KarlinAltschul) else {}
        described = {"name": statistics_name(statistics, run.program), **constants}
    return {
        "program": "swsearch",
        "version": run.version,
        "database": {
            "name": encodable(run.database_name),
            "subjects": run.database_subjects,
            "residues": run.database_residues,
            "sources": [dict(source) for source in run.database_sources],
        },
        "parameters": {
            "mode": run.mode,
            "matrix": encodable(scoring.matrix.name),
            "gap_open": scoring.gap_open,
            "gap_extend": scoring.gap_extend,
            "evalue": run.evalue,
            "max_hits": run.max_hits,
            "effective_residues": run.effective_residues or run.database_residues,
            **translated_codes(run),
            **run.options,
        },
        "statistics": described,
    }


def entries_of(titles: Sequence[str]) -> list[tuple[str, str]]:
    """Return identifier and description of each title of a subject."""
    parted = (title.partition(" ") for title in titles)
    return [(first, rest.strip()) for first, _, rest in parted]


# many texts at a time: most have nothing to replace, and one look at all of them shows it


def _is_plain(texts: Sequence[str]) -> bool:
    """Return whether every text is printed as it is; then no title was merged from several."""
    together = "".join(texts)
    return together.isascii() and together.isprintable()


def all_encodable(texts: Sequence[str]) -> list[str]:
    """Apply `encodable` to each text."""
    return list(texts) if "".join(texts).isascii() else [encodable(text) for text in texts]


def printed_identifiers(texts: Sequence[str]) -> list[str]:
    """Apply `identifier` to each text."""
    if _is_plain(texts):
        return [text or MISSING for text in map(str.strip, texts)]
    return [identifier(text) for text in texts]


def subject_names(batch: HitBatch) -> list[str]:
    """Return the identifiers of a batch's subjects as they are printed."""
    return printed_identifiers(batch.identifiers)


def subject_titles(batch: HitBatch) -> list[list[str]]:
    """Return the titles of each subject of a batch; several if NCBI merged identical sequences."""
    headers = zip(batch.identifiers, batch.descriptions, strict=True)
    if _is_plain(batch.identifiers) and _is_plain(batch.descriptions):
        return [[f"{identifier} {description}".strip() or MISSING] for identifier, description in headers]
    return [titles(*header) for header in headers]


JSON_KEY = "options"
"""Key of the options in an object of JSON lines."""

_BLOCK = re.compile(r'<pre id="options">(.*?)</pre>', re.DOTALL)


class OptionsWriter(Writer):
    """The options of the search as TOML, which ``swsearch search --config`` takes; no hits."""

    needs_alignments = False

    def begin(self, run: RunInfo) -> None:
        """Write the options."""
        self._stream.write(options_as_toml(run))

    def write(self, result: SearchResult) -> None:
        """Write nothing of a query."""


def options_as_toml(run: RunInfo) -> str:
    """Return the options of a search as TOML."""
    lines = [f"# Options of a search by swsearch {run.version}: swsearch search QUERIES SUBJECTS --config FILE"]
    lines += [f"{name} = {_value(value)}" for name, value in run.settings.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):  # as JSON has it; but TOML takes neither DEL nor halves of surrogate pairs
        text = json.dumps(value.encode("utf-8", "replace").decode("utf-8"), ensure_ascii=False)
        return text if printable(text) == text else "".join(map(_escape, text))
    return json.dumps(value)


def _escape(character: str) -> str:
    return character if printable(character) == character else f"\\u{ord(character):04X}"


def options_as_html(run: RunInfo) -> str:
    """Return the options of a search as a part of a page; empty where they are not known."""
    if not run.settings:
        return ""
    text = escape(options_as_toml(run)).encode("ascii", "xmlcharrefreplace").decode("ascii")
    return (
        "<details><summary>Options for another search</summary>\n"
        "<p>As a file, or by this report itself: <code>swsearch search QUERIES SUBJECTS --config FILE</code></p>\n"
        f'<pre id="options">{text}</pre>\n</details>\n'
    )


def settings_in(text: str, name: str) -> OptionValues:
    """Return the options that a file holds: TOML, or a report of ``html`` or ``jsonl``.

    Parameters
    ----------
    text : str
        The file, or enough of its beginning.
    """
    if text.lstrip()[:1] == "{":
        return _options_from_json(text.lstrip().partition("\n")[0], name)
    if text.lstrip()[:9].lower() == "<!doctype":
        block = _BLOCK.search(text)
        if block is None:
            raise InputError(
                f"{name}: got an HTML page without options, expected a report of swsearch search, or TOML"
            )
        text = unescape(block[1])
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{name}: not TOML: {error}; expected lines such as evalue = 1e-5") from None


def _options_from_json(line: str, name: str) -> OptionValues:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    options = header.get(JSON_KEY) if isinstance(header, dict) else None
    if not isinstance(options, dict):
        raise InputError(f"{name}: got JSON without {JSON_KEY!r}, expected a report of --outfmt jsonl, or TOML")
    return options


@dataclass
class TaxonHits:
    """The hits of a taxon.

    Parameters
    ----------
    taxon : Taxon
        Whose.
    n_hits : int
        How many there are.
    evalue : float
        The least E-value of them; NaN where there are no statistics.
    """

    taxon: Taxon
    n_hits: int = 0
    evalue: float = math.nan


def hits_by_taxon(hits: HitTable) -> list[TaxonHits]:
    """Count the hits of each taxon as reports show them, pieces of a record as one.

    Returns
    -------
    counts : list of TaxonHits
        The most frequent taxon first; of equally frequent ones that of the better hit. A hit of several taxa counts
        for each of them. None where the database knows no taxa, or those of no hit.
    """
    if not hits.headers.taxa:
        return []
    shown_table, counts = shown_hits(hits), dict[int, TaxonHits]()
    for taxa, evalue in zip(shown_table.headers.taxa or (), shown_table.statistics.evalues.tolist(), strict=True):
        for taxon in taxa:
            taxon_hits = counts.setdefault(taxon.taxid, TaxonHits(taxon))
            taxon_hits.n_hits += 1
            taxon_hits.evalue = evalue if math.isnan(taxon_hits.evalue) else min(taxon_hits.evalue, evalue)
            if not taxon_hits.taxon.scientific:  # of several databases, not all may have a taxonomy
                taxon_hits.taxon = taxon
    return sorted(counts.values(), key=lambda each: -each.n_hits)


def query_member(hits: HitTable) -> dict[str, list[dict[str, Any]]]:
    """Return the member ``taxa`` of a query in ``jsonl``: hits by taxon; empty if no hit has a taxon."""
    counts = [
        {
            "taxid": each.taxon.taxid,
            "scientific_name": encodable(each.taxon.scientific) or None,
            "hits": each.n_hits,
            "evalue": finite(each.evalue),
        }
        for each in hits_by_taxon(hits)
    ]
    return {"taxa": counts} if counts else {}


def entry_members(batch: HitBatch) -> list[str]:
    """Return what BLAST's JSON says of the taxon of each hit, with a comma before it; nothing where it is not known.

    Of a subject that stands for several sequences it is not known which of them is of which of several taxa.
    """
    members = []
    for taxa in batch.taxa or [()] * batch.n_hits:
        if len(taxa) != 1:
            members.append("")
            continue
        name = f',"sciname":{encode(encodable(taxa[0].scientific))}' if taxa[0].scientific else ""
        members.append(f',"taxid":{taxa[0].taxid}{name}')
    return members


def subject_members(batch: HitBatch) -> dict[str, list[str]]:
    """Return the members that ``jsonl`` has of each subject, as JSON; none where the database knows no taxa."""
    if batch.taxa is None:
        return {}
    names = [[encodable(each.scientific) or None for each in taxa] for taxa in batch.taxa]
    return {
        "taxids": [encode([each.taxid for each in taxa]) for taxa in batch.taxa],
        "scientific_names": [encode(each) for each in names],
    }
