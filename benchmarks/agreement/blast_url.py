"""Whether Biopython's qblast, asked of a server of ours, gives what `swsearch search` gives.

The subjects become a database, and `swsearch serve` serves it. Fifty queries, parts of subjects with every tenth
residue replaced, are sent one at a time by `Bio.Blast.qblast` and by `Bio.Blast.NCBIWWW.qblast` with `url_base=`, and
what comes back is read by `Bio.Blast` and by `NCBIXML`. `swsearch search` runs once for each set of options, and
writes lines of JSON, which have every digit. Compared are, of every query, the hits in their order, and of every hit
its raw score, bit score and E-value (to the six digits of BLAST's XML), its places and both rows of the alignment.

Biopython waits 20 seconds between two searches; what it remembers of the last one is taken back before each.

Needs: a FASTA file of subjects; pip install 'swsearch[server]'. With 20,000 proteins some minutes on two cores.
Run:   python -m benchmarks.agreement.blast_url --subjects DB.fasta [--out benchmarks/results/blast_url.txt]
Exit code 1 if anything differs.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.support.common import Records, arguments, finish, heading, read, residues, swsearch, table, write
from benchmarks.support.serving import Serving

LEAST, MOST = 40, 400
"""Residues of a query."""

SEED = 19


class Asked(NamedTuple):
    """One set of options, in both ways of saying it."""

    name: str
    words: dict[str, Any]
    """Of qblast."""
    options: tuple[str, ...]
    """Of ``swsearch search``."""


CASES = (
    Asked("qblast's defaults", {}, ("--evalue", "10", "--max-hits", "50")),
    Asked(
        "COMPOSITION_BASED_STATISTICS=0",
        {"composition_based_statistics": "0"},
        ("--evalue", "10", "--max-hits", "50", "--statistics", "published"),
    ),
    Asked(
        "BLOSUM80, 10 1, E 0.001, 500 hits, lower case masked",
        {
            "matrix_name": "BLOSUM80", "gapcosts": "10 1", "expect": 1e-3, "hitlist_size": 500, "lcase_mask": "yes",
            "filter": "F", "composition_based_statistics": "F",
        },
        (
            "--matrix", "BLOSUM80", "--gap-open", "10", "--gap-extend", "1", "--evalue", "1e-3", "--max-hits", "500",
            "--query-mask", "lower", "--statistics", "published",
        ),
    ),
)  # fmt: skip


class Seen(NamedTuple):
    """A hit as a client sees it; numbers as BLAST's XML prints them."""

    subject: str
    score: int
    bit_score: str
    evalue: str
    places: tuple[int, int, int, int]
    """First and last residue of query and subject, counted from 1."""
    rows: tuple[str, str]


Found = list[Seen]


def queries_of(subjects: Records, number: int) -> Records:
    """Return parts of random subjects, every tenth residue replaced, a fifth of each in lower case."""
    generator = random.Random(SEED)
    long_enough = [letters for _, letters in subjects if len(letters) >= LEAST]
    found = []
    for place in range(number):
        letters = generator.choice(long_enough)
        length = generator.randint(LEAST, min(MOST, len(letters)))
        start = generator.randint(0, len(letters) - length)
        part = list(letters[start : start + length])
        for changed in range(generator.randrange(10), length, 10):
            part[changed] = generator.choice("ACDEFGHIKLMNPQRSTVWY")
        text = "".join(part)
        found.append((f"q{place + 1}", text[: -length // 5] + text[-length // 5 :].lower()))
    return found


def by_blast(url: str, database: str, query: str, words: dict[str, Any]) -> Found:
    """Ask with `Bio.Blast`."""
    from Bio import Blast

    Blast.qblast.previous = 0
    with Blast.qblast("blastp", database, query, url_base=url, **words) as stream:
        record = Blast.read(stream)
    found = []
    for hit in record:
        for part in hit:
            subject, asked = part.coordinates
            places = (int(asked[0]) + 1, int(asked[-1]), int(subject[0]) + 1, int(subject[-1]))
            bits, evalue = f"{part.annotations['bit score']:g}", f"{part.annotations['evalue']:g}"
            found.append(Seen(hit.target.id, int(part.score), bits, evalue, places, (part[1], part[0])))
    return found


def by_ncbiwww(url: str, database: str, query: str, words: dict[str, Any]) -> Found:
    """Ask with `Bio.Blast.NCBIWWW`, and read with `NCBIXML`."""
    from Bio.Blast import NCBIWWW, NCBIXML

    NCBIWWW.qblast.previous = 0
    record = NCBIXML.read(NCBIWWW.qblast("blastp", database, query, url_base=url, **words))
    return [
        Seen(
            alignment.hit_id, int(part.score), f"{part.bits:g}", f"{part.expect:g}",
            (part.query_start, part.query_end, part.sbjct_start, part.sbjct_end), (part.query, part.sbjct),
        )
        for alignment in record.alignments
        for part in alignment.hsps
    ]  # fmt: skip


CLIENTS: dict[str, Callable[[str, str, str, dict[str, Any]], Found]] = {
    "Bio.Blast.qblast": by_blast,
    "Bio.Blast.NCBIWWW.qblast": by_ncbiwww,
}


def by_command(queries: Path, database: Path, options: tuple[str, ...]) -> list[Found]:
    """Run ``swsearch search``, and return what it finds for each query."""
    lines = swsearch("search", queries, database, "--outfmt", "jsonl", "--quiet", *options).splitlines()
    return [[seen_of(hit) for hit in json.loads(line)["hits"]] for line in lines]


def differing(found: list[Found], known: list[Found]) -> dict[str, int]:
    """Count what differs: queries with other hits, or in another order, and of the hits in place each field."""
    counts = dict.fromkeys(("hits", *Seen._fields[1:]), 0)
    for ours, theirs in zip(found, known, strict=True):
        if [hit.subject for hit in ours] != [hit.subject for hit in theirs]:
            counts["hits"] += 1
            continue
        for one, other in zip(ours, theirs, strict=True):
            for name in Seen._fields[1:]:
                counts[name] += getattr(one, name) != getattr(other, name)
    return counts


def seen_of(hit: dict[str, Any]) -> Seen:
    """Return a hit of JSON lines as a client sees it."""
    places = (hit["query_start"] + 1, hit["query_end"], hit["subject_start"] + 1, hit["subject_end"])
    rows = (hit["query_row"], hit["subject_row"])
    return Seen(hit["subject"]["id"], hit["score"], f"{hit['bit_score']:g}", f"{hit['evalue']:g}", places, rows)


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(first=50)
    options = parser.parse_args()
    subjects = read(options.subjects)
    queries = queries_of(subjects, options.first)
    rows, n_differing = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fasta = write(folder / "queries.fasta", queries)
        database = folder / "database.h5"
        swsearch("db", "build", options.subjects, "-o", database, "--quiet")
        with Serving([database], folder) as server:
            address = f"http://127.0.0.1:{server.port}/Blast.cgi"
            for case in CASES:
                known = by_command(fasta, database, case.options)
                n_hits = f"{sum(map(len, known)):,}"
                for client, ask in CLIENTS.items():
                    found = [
                        ask(address, database.stem, f">{name}\n{letters}\n", case.words) for name, letters in queries
                    ]
                    counts = differing(found, known)
                    n_differing += sum(counts.values())
                    rows.append([case.name, client, len(found), n_hits, *counts.values()])
    lines = heading(__file__, ["biopython", "fastapi", "uvicorn"])
    lines.append(f"{options.subjects.name}: {len(subjects):,} subjects, {residues(subjects):,} residues; "
                 f"{len(queries)} queries, parts of them, {residues(queries):,} residues")  # fmt: skip
    lines += [
        "",
        "What differs from `swsearch search`: queries with other hits or in another order, and fields of hits:",
    ]
    columns = [name.replace("_", " ") for name in Seen._fields[1:]]
    lines += ["", *table(["asked for", "client", "queries", "hits", "other hits", *columns], rows), ""]
    lines.append(f"{n_differing} differ")
    finish(lines, options.out)
    if n_differing:
        sys.exit(1)


if __name__ == "__main__":
    main()
