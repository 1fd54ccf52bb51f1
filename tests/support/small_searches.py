"""A small database, queries that have relatives there, and reports of searches with what differs left out."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Iterable
from pathlib import Path

from swsearch import report
from swsearch.db import Database
from swsearch.pipeline.search_results import SearchResults
from swsearch.report.outputs import Output, write_reports
from swsearch.results import SearchResult

LETTERS = "ARNDCQEGHILKMFPSTWYV"

PARENT = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVVHSLAKWKRQTLGQHDFSAGEGLYTHMKALRPDEDRLS"


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


def written(results: SearchResults | list[SearchResult], keys: Iterable[str] | None = None) -> dict[str, bytes]:
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
