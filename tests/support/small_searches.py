"""A small database and searches of it in every option that changes results: what a server must answer with."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from swsearch import report
from swsearch.backends.local import LocalBackend
from swsearch.db import Database
from swsearch.engines.cpu.engine import CpuEngine
from swsearch.pipeline.search_results import ResultIterator, SearchResults
from swsearch.remote.received import ReceivedResults, ReceivedSearch
from swsearch.remote.transfer import TransferReader, write_transfer
from swsearch.remote.wire import SearchRequest
from swsearch.report.outputs import Output, write_reports
from swsearch.results import SearchResult
from swsearch.run_info import Origin

LETTERS = "ARNDCQEGHILKMFPSTWYV"

PARENT = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVVHSLAKWKRQTLGQHDFSAGEGLYTHMKALRPDEDRLS"

CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "published": {"statistics": "published", "evalue": 100},
    "global": {"mode": "global", "max_hits": 5},
    "semiglobal": {"mode": "semiglobal", "statistics": "none", "sort": "score"},
    "several": {"max_alignments": 4, "evalue": 1000, "subject_mask": "lower"},
    "masked": {"query_mask": "lower", "subject_mask": "tantan", "preset": "sensitive"},
    "filters": {"min_identity": 60, "min_query_coverage": 30, "max_hits": 7, "exclude_ids": ["s3"]},
    "named": {"include_ids": ["s1", "s5", "other7"], "evalue": 1e6, "dbsize": 1000000, "sort": "score"},
    "distribution": {"distribution": True, "matrix": "PAM250", "gap_open": 12},
    "iterated": {"iterations": 3, "keep_next": True},
    "next": {"keep_next": True, "statistics": "published"},
}
"""Options by what they are called."""


def family(seed: int = 7, n: int = 24) -> list[tuple[str, str]]:
    """Return relatives of a sequence, of more and more changes, some of them twice in one, and unrelated ones."""
    draw = random.Random(seed)
    found = []
    for k in range(n):
        letters = [draw.choice(LETTERS) if draw.random() < 0.025 * k else letter for letter in PARENT]
        copy = "".join(letters)
        flank = "".join(draw.choice(LETTERS) for _ in range(draw.randrange(60)))
        masked = copy[:30].lower() + copy[30:] if k % 5 == 1 else copy
        twice = masked + flank + masked[20:] if k % 4 == 2 else flank + masked
        found.append((f"s{k} relative <{k}> & so on", twice))
    for k in range(n):
        found.append((f"other{k}", "".join(draw.choice(LETTERS) for _ in range(draw.randrange(20, 300)))))
    found.append(("low run", "QPQPQPQPQPQPQQQQQQQQQQPPPPPPPPPPQQQQQQ" + PARENT[40:90]))
    found.append(("empty one", ""))
    return found


def fasta(records: Iterable[tuple[str, str]]) -> bytes:
    """Return records as FASTA."""
    return "".join(f">{header}\n{letters}\n" for header, letters in records).encode()


QUERIES = fasta(
    [
        ("q1 the parent", PARENT[:50] + PARENT[50:70].lower() + PARENT[70:]),
        ("q2", PARENT[10:60] + "QPQPQPQPQPQPQQQQ"),
        ("q3 of nothing", ""),
        ("q4", "WWHHCCMMWWHHCC"),
    ]
)


def build(folder: Path, name: str = "db.h5") -> Path:
    """Build the database."""
    source = folder / "family.fasta"
    source.write_bytes(fasta(family()))
    Database.build([str(source)], folder / name, mask="tantan").close()
    return folder / name


ORIGIN = {"begun": "2026-11-23T14:00:00+00:00", "command": "swsearch search", "queries": "queries.fasta"}


def request_of(case: str, queries: bytes = QUERIES) -> SearchRequest:
    """Return the request of a case."""
    return SearchRequest("db", queries, options=CASES[case], origin=ORIGIN)


def searched(
    request: SearchRequest, database: Database, engine: CpuEngine, origin: Origin | None = None
) -> SearchResults:
    """Return the results of a search that runs here."""
    queries, options = request.read()
    return SearchResults(
        queries, database, options, partial(LocalBackend, engine=engine, threads=1), threads=1,
        origin=origin or request.run_origin,
    )  # fmt: skip


def transferred(results: SearchResults, request: SearchRequest) -> bytes:
    """Return what a server sends of a search, which runs now."""
    return b"".join(write_transfer(results.search, results.search.batches(), request, str))


def read_transfer(stream: io.BytesIO, request: SearchRequest, threads: int | None = None) -> ReceivedResults:
    """Return the results that a server sent, which are read as they are taken."""
    return ReceivedResults.of(ReceivedSearch(TransferReader(stream), request, threads=threads), threads)


def written(results: ResultIterator[Any] | list[SearchResult], keys: Iterable[str] | None = None) -> dict[str, bytes]:
    """Return results in every format, or some; what may differ between runs of the same search is left out."""
    chosen = [kind for kind in report.OUTPUT_FORMATS if keys is None or kind.key in keys]
    streams = [io.BytesIO() if kind.writer.binary else io.StringIO() for kind in chosen]
    write_reports(results, [Output(None, kind.key, stream) for kind, stream in zip(chosen, streams, strict=True)])
    found = {}
    for kind, stream in zip(chosen, streams, strict=True):
        value = stream.getvalue()
        text = value if isinstance(value, bytes) else value.encode()
        found[kind.key] = re.sub(rb"<dt>Seconds</dt><dd>[^<]*</dd>", b"", text)
    return found
