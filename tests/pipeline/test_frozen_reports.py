"""Searches of every kind write the same bytes as when tests/golden/reports.json was made, in every format.

The file has a SHA-256 of each search and format, and of ``values``: all values of the results, also those that no
report shows. `text_of` removes what may differ between runs. A wanted change:
``pytest tests/pipeline/test_frozen_reports.py --renew-golden``.

To see a difference, run the test that fails here and on an earlier revision, each with a new ``--basetemp``, and
compare both folders with ``diff -r``. With that option each test writes its texts there, also when it passes.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from Bio.Data.CodonTable import standard_dna_table
from Bio.Seq import Seq
from pyarrow import feather, parquet

import swsearch
from support.taxa import write_taxonomy
from swsearch.errors import SwsearchWarning
from swsearch.report import OUTPUT_FORMATS, OutputFormat, find_format
from swsearch.report.arrow import ARROW_COLUMNS
from swsearch.report.tabular import COLUMNS
from swsearch.results import SearchResult

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "reports.json"

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"

Records = list[tuple[str, str]]

# random() alone draws: its numbers are the same in every version of Python


def drawn(draw: random.Random, letters: str, n: int) -> str:
    return "".join(letters[int(draw.random() * len(letters))] for _ in range(n))


def relative(draw: random.Random, parent: str, change: float) -> str:
    """Return a sequence with residues that were replaced, some lost, and some new."""
    found = []
    for letter in parent:
        chance = draw.random()
        if chance < change:
            found.append(drawn(draw, AMINO_ACIDS, 1))
        elif chance > 1 - change / 12:
            found.append(letter + drawn(draw, AMINO_ACIDS, 1 + int(draw.random() * 4)))
        elif chance < 1 - change / 6:
            found.append(letter)
    return "".join(found)


def proteins(draw: random.Random, parents: Sequence[str]) -> Records:
    """Return relatives of more and more changes, some with two copies, repeated or in lower case, and others."""
    found: Records = []
    taxids = (9606, 10090, 562, 0, 63221)
    for place, parent in enumerate(parents):
        for k in range(18):
            copy = relative(draw, parent, 0.028 * k)
            flank = drawn(draw, AMINO_ACIDS, int(draw.random() * 50))
            copy = copy[:25].lower() + copy[25:] if k % 5 == 1 else copy
            letters = copy + flank + relative(draw, parent, 0.2) if k % 4 == 2 else flank + copy
            found.append((f"sp|P{place}{k:04}|R{k}_F{place} relative <{k}> & so on OX={taxids[k % 5]}", letters))
        found.append((f"again{place} the same\x01merged{place} as another \u00e9", found[-3][1]))
    for k in range(30):
        found.append((f"other{k} OX=1423", drawn(draw, AMINO_ACIDS, 5 + int(draw.random() ** 2 * 300))))
    found.append(("low runs of two letters", "QPQPQPQPQPQPQQQQQQQQQQPPPPPPPPPPQQQQQQ" * 3 + parents[0][40:90]))
    found.append(("odd letters", parents[1][:40] + "BZXUOJ*" + parents[1][45:]))
    return [*found, ("empty one", ""), ("one", "W")]


CODONS: dict[str, list[str]] = {}
for _codon, _residue in sorted(standard_dna_table.forward_table.items()):
    CODONS.setdefault(_residue, []).append(_codon)


def gene(draw: random.Random, protein: str) -> str:
    """Return DNA that is translated into a protein."""
    known = [CODONS[letter] for letter in protein.upper() if letter in CODONS]
    return "".join(codons[int(draw.random() * len(codons))] for codons in known)


def reverse(dna: str) -> str:
    return str(Seq(dna).reverse_complement())


def genome(draw: random.Random, records: Records) -> Records:
    """Return DNA with genes on both strands, near and far from each other; one record has many windows."""
    found: Records = []
    for k in range(3):
        dna = ""
        for _ in range(12):
            copy = gene(draw, records[int(draw.random() * 40)][1])
            dna += drawn(draw, "ACGT", int(draw.random() * (4000 if k == 0 else 300))).lower()
            dna += copy if draw.random() < 0.5 else reverse(copy)
        found.append((f"chr{k} of a thing", dna + "NNNN"))
    copy = gene(draw, PARENTS[0])
    return [*found, ("tiny", "ACG"), ("twice", copy + "ACGT" + copy), ("shifted", copy[:150] + "A" + copy[150:])]


DRAW = random.Random(20261127)
PARENTS = [drawn(DRAW, AMINO_ACIDS, 106), drawn(DRAW, AMINO_ACIDS, 170)]
PROTEINS = proteins(DRAW, PARENTS)
GENOME = genome(DRAW, PROTEINS)

QUERIES: Records = [
    ("q1 the parent", PARENTS[0][:50] + PARENTS[0][50:70].lower() + PARENTS[0][70:]),
    ("q2 <part> & more", PARENTS[1][10:70] + "QPQPQPQPQPQPQQQQ"),
    ("q3 of nothing", ""),
    ("q4 of chance", "WWHHCCMMWWHHCC"),
]
ODD_QUERIES: Records = [
    ("low of two letters", "QPQPQPQPQPQPQQQQQQQQQQPPPPPPPPPPQQQQQQ" * 3),
    ("unknown", "X" * 30), ("one", "W"), ("short", PARENTS[0][20:29]),
]  # fmt: skip
DNA_QUERIES: Records = [
    ("d1 forward", "AC" + gene(DRAW, PARENTS[0]) + "G"),
    ("d2 reverse", reverse(gene(DRAW, PARENTS[1][20:90])) + "TTA"),
    ("d3 of little", "ACGTACGTACGT"),
    ("d4 lower", gene(DRAW, PARENTS[0][:40]) + gene(DRAW, PARENTS[0][40:]).lower()),
    ("d5 shifted", gene(DRAW, PARENTS[1][:80]) + "A" + gene(DRAW, PARENTS[1][80:])),
    ("d6 of nothing", ""),
]
# three groups of queries that are scored together, and of the first 52 two
MANY = [(f"m{k} of many", relative(DRAW, PARENTS[k % 2], 0.02 * (k % 25)) + drawn(DRAW, "AG", k)) for k in range(72)]
MANY_DNA = [(f"n{k} of many", gene(DRAW, letters)) for k, (_, letters) in enumerate(MANY[:18])]

PARENT = PARENTS[0]
ALIGNMENT = f">master\n{PARENT[:60]}\n>row\n{PARENT[:20]}--{PARENT[22:40]}aw{PARENT[40:60]}\n"
"""A3M."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all that searches read; they run in it, so that reports name no other folder."""
    folder = tmp_path_factory.mktemp("searched")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_taxonomy(Path("taxonomy"))
        some = {"all": PROTEINS, "first": PROTEINS[:20], "rest": PROTEINS[20:], "genome": GENOME, "more": GENOME[1:3]}
        for name, records in {**some, "queries": QUERIES}.items():
            text = "".join(f">{header}\n{letters}\n" for header, letters in records)
            Path(f"{name}.fasta").write_text(text, encoding="utf-8")
        with pytest.warns(SwsearchWarning, match="12 of 72 records have no taxid"):
            swsearch.Database.build("all.fasta", "taxa.h5", taxids="header", taxonomy="taxonomy").close()
        swsearch.Database.build("all.fasta", "masked.h5", mask="tantan").close()
        swsearch.Database.build("all.fasta", "volumes.json", volume_size=40_000).close()
        for name in ("first", "rest"):
            swsearch.Database.build(f"{name}.fasta", f"{name}.h5").close()
        swsearch.Database.build("genome.fasta", "genome.h5", translate=True).close()
        swsearch.Database.build("more.fasta", "more.h5", translate=True, genetic_code=11).close()
        Path("own.txt").write_text(own_matrix(), encoding="ascii")
        Path("family.a3m").write_text(ALIGNMENT, encoding="ascii")
        options = {"preset": "default", "engine": "cpu", "iterations": 2, "keep_profiles": True}
        found = swsearch.search(QUERIES[:1], "masked.h5", **options)
        next(found).next_profile.save("profile.json")
        found.close()
    return folder


def own_matrix() -> str:
    """Return a matrix that no program has."""
    rows = [[7 if a == b else -1 - (i * k) % 4 for k, b in enumerate(AMINO_ACIDS)] for i, a in enumerate(AMINO_ACIDS)]
    rows = [[rows[min(i, k)][max(i, k)] for k in range(20)] for i in range(20)]
    lines = [f"{letter} {' '.join(map(str, row))}\n" for letter, row in zip(AMINO_ACIDS, rows, strict=True)]
    return f"  {' '.join(AMINO_ACIDS)}\n{''.join(lines)}"


Asked = tuple[Any, Any, dict[str, Any]]


def searches() -> dict[str, Asked]:
    """Return queries, subjects and options of each search, by name."""
    return {**plain_searches(), **iterated_searches(), **translated_searches()}


def plain_searches() -> dict[str, Asked]:
    several = {"max_alignments": 4, "evalue": 1000}
    none = {"statistics": "none"}
    asked: dict[str, dict[str, Any]] = {
        "default": {},
        "published": {"statistics": "published", "evalue": 100},
        "no statistics": {**none, "min_score": 30},
        "global": {"mode": "global", "max_hits": 5},
        "global without statistics": {"mode": "global", **none, "max_hits": 20},
        "semiglobal": {"mode": "semiglobal"},
        "semiglobal without statistics": {"mode": "semiglobal", **none, "sort": "score"},
        "several": {**several, "subject_mask": "lower"},
        "several published": {**several, "statistics": "published", "subject_mask": "none"},
        "several filtered": {**several, "min_score": 25, "min_identity": 35},
        "masked": {"query_mask": "lower", "preset": "sensitive"},
        "masked by tantan": {"query_mask": "tantan", "subject_mask": "tantan"},
        "short": {"preset": "short", "evalue": 20000, "max_hits": 30},
        "identity": {"min_identity": 60, "min_query_coverage": 30, "max_hits": 7, "exclude_ids": ["R3_F0", "other1"]},
        "lengths": {"min_subject_coverage": 70, "min_query_coverage": 90.5, "min_score": 40},
        "named": {"include_ids": ["P00001", "R5_F1", "other7"], "evalue": 1e6, "dbsize": 1000000, "sort": "score"},
        "not named": {"exclude_ids": ["again0", "nowhere"], "ignore_missing_ids": True, "max_hits": 3},
        "distribution": {"distribution": True, "matrix": "PAM250", "gap_open": 12},
        "distribution of global scores": {"distribution": True, "mode": "global", "evalue": 1e-3},
        "own matrix": {"matrix": "own.txt", "gap_open": 9, "gap_extend": 2},
        "best of equal": {"max_hits": 2, "sort": "score", **none},
    }
    found: dict[str, Asked] = {name: (QUERIES, "masked.h5", options) for name, options in asked.items()}
    return {
        **found,
        "odd queries": (ODD_QUERIES, "volumes.json", {"evalue": 100}),
        "nothing": ([("none", ""), ("nor here", "")], "all.fasta", {}),
        "taxids": (QUERIES, "taxa.h5", {"taxids": [9606, 562]}),
        "not of taxids": (QUERIES, "taxa.h5", {"exclude_taxids": "9443", "max_hits": 9}),
        "one query": (QUERIES[:1], "taxa.h5", {"query_loc": "10-80", "max_alignments": 2, "evalue": 1}),
        "queries of a file": ("queries.fasta", "all.fasta", {"max_hits": 50}),
        "several databases": (QUERIES, ["first.h5", "rest.h5"], {"evalue": 100}),
        "volumes": (QUERIES, "volumes.json", {"statistics": "published", "max_alignments": 2}),
        "many": (MANY, "all.fasta", {"max_hits": 6}),
        "many of several": (MANY[:52], "first.h5", {"max_hits": 3, "max_alignments": 3, "statistics": "published"}),
    }


def iterated_searches() -> dict[str, Asked]:
    asked: dict[str, dict[str, Any]] = {
        "iterated": {"iterations": 3, "keep_profiles": True},
        "iterated, few included": {"iterations": 3, "max_included": 4},
        "iterated, several": {"iterations": 2, "distribution": True, "max_alignments": 2, "min_identity": 20},
        "iterated, published": {"iterations": 3, "statistics": "published", "inclusion_evalue": 1e-5, "max_hits": 4},
        "iterated, coverage": {"iterations": 2, "inclusion_coverage": 80, "dbsize": 10**7, "query_mask": "lower"},
        "iterated, semiglobal": {"iterations": 2, "mode": "semiglobal", "keep_profiles": True, "sort": "score"},
        "next profile": {"keep_profiles": True, "statistics": "published"},
    }
    return {
        **{name: (QUERIES, "masked.h5", options) for name, options in asked.items()},
        "iterated, many": (MANY[:52], "masked.h5", {"iterations": 2, "max_hits": 4}),
        "iterated, several databases": (QUERIES, ["first.h5", "rest.h5"], {"iterations": 5}),
        "profile": ("profile.json", "masked.h5", {}),
        "profile, global": ("profile.json", "first.h5", {"mode": "global", "max_hits": 12}),
        "profile, iterated": ("profile.json", "masked.h5", {"iterations": 2, "keep_profiles": True}),
        "alignment": ("family.a3m", "masked.h5", {"distribution": True}),
    }


def translated_searches() -> dict[str, Asked]:
    published, none = {"statistics": "published"}, {"statistics": "none"}
    blastx: dict[str, dict[str, Any]] = {
        "default": {},
        "published": {**published, "evalue": 1000},
        "several": {"max_alignments": 3, "evalue": 1000, "max_hits": 6},
        "identity": {"min_identity": 50, "max_hits": 7},
        "distribution": {"distribution": True, "strand": "plus"},
        "minus": {"strand": "minus", "genetic_code": 11, "query_mask": "lower"},
        "no statistics": {**none, "max_hits": 3, "sort": "score"},
        "frame shift": {"frame_shift": 15},
        "frame shift, no statistics": {"frame_shift": 12, **none, "min_score": 40, "query_mask": "lower"},
        "frame shift, distribution": {"frame_shift": 15, "distribution": True, "max_hits": 5},
    }
    tblastn: dict[str, dict[str, Any]] = {
        "default": {},
        "published": published,
        "no statistics": {**none, "min_score": 30},
        "few": {"max_hits": 3},
        "identity": {"min_identity": 70, "max_hits": 6},
        "score": {"sort": "score", "dbsize": 10**6},
        "named": {"include_ids": ["chr1", "twice"]},
        "several": {"max_alignments": 2},
    }
    tblastx: dict[str, dict[str, Any]] = {
        "default": {}, "published": published, "no statistics": {**none, "min_score": 40, "max_hits": 9},
        "plus": {"strand": "plus", "max_hits": 4},
    }  # fmt: skip
    return {
        **{
            f"blastx, {name}": (DNA_QUERIES, "all.fasta", {"translate": True, **each})
            for name, each in blastx.items()
        },
        **{f"tblastn, {name}": (QUERIES, "genome.h5", each) for name, each in tblastn.items()},
        **{
            f"tblastx, {name}": (DNA_QUERIES, "genome.h5", {"translate": True, **each})
            for name, each in tblastx.items()
        },
        "blastx, many": (MANY_DNA, "first.h5", {"translate": True, "max_hits": 3}),
        "tblastn, code": (QUERIES, "more.h5", {}),
        "tblastn, profile": ("profile.json", "genome.h5", {}),
        "tblastn, many": (MANY[:52], "more.h5", {"max_hits": 2, **published}),
    }


SEARCHES = searches()

DNA_FILES = ("genome.h5", "more.h5")
"""Databases that a `swsearch.Searcher` refuses."""

ALL_COLUMNS = {"6, all columns": " ".join(["6", *COLUMNS]), "arrow, all columns": " ".join(["arrow", *ARROW_COLUMNS])}

OUTFMTS = {**{each.key: each.key for each in OUTPUT_FORMATS}, **ALL_COLUMNS}
"""Every format, and tables with all columns, by name."""


def text_of(kind: OutputFormat, written: str | bytes) -> str:
    """Return a report without what may differ between runs of the same search, and the content of binary ones."""
    if isinstance(written, bytes):
        read = parquet.read_table if kind.key == "parquet" else feather.read_table
        table = read(pyarrow.BufferReader(written))
        known = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
        rows = [json.dumps(row) for row in table.to_pylist()]
        written = "\n".join([*map(str, table.schema), known["swsearch"], *rows, ""])
    if kind.key == "html":  # the page's style and script, and what the run was like
        written = re.sub(r"<(style|script)>.*?</\1>", "", written, flags=re.DOTALL)
        written = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", written)
        written = re.sub(r'<section id="run".*?</section>\n', "", written, flags=re.DOTALL)
        written = re.sub(r"<div><dt>SHA-256, database</dt>.*?</div>\n", "", written)
    version = rf'(swsearch |VN:|"version": ?"){re.escape(swsearch.__version__)}'
    return re.sub(version, r"\1VERSION", written)


def write_reports(results: Iterable[SearchResult], names: Iterable[str], header: bool = False) -> dict[str, str]:
    """Return reports of results by the names of `OUTFMTS`."""
    chosen = [(name, OUTFMTS[name]) for name in names]
    kinds = [find_format(outfmt) for _, outfmt in chosen]
    streams = [io.BytesIO() if kind.writer.binary else io.StringIO() for kind in kinds]
    swsearch.write(results, streams, [outfmt for _, outfmt in chosen], header=header)
    return {
        name: text_of(kind, stream.getvalue()) for (name, _), kind, stream in zip(chosen, kinds, streams, strict=True)
    }


def all_texts(search: str) -> dict[str, str]:
    """Return all that a search writes, by format; formats that cannot hold its results are left out."""
    queries, subjects, options = SEARCHES[search]
    found = list(swsearch.search(queries, subjects, engine="cpu", threads=3, **options))
    kinds = {name: find_format(outfmt).writer for name, outfmt in OUTFMTS.items()}
    able = [name for name, writer in kinds.items() if found[0].program in writer.programs]
    single = [name for name in able if kinds[name].is_single_query]
    usual = [name for name in able if name not in (*single, *ALL_COLUMNS)]
    with swsearch.search(queries, subjects, engine="cpu", threads=1, **options) as results:
        written = write_reports(results, usual)
    written |= write_reports(found, ALL_COLUMNS, header=True)
    for name in single:
        written[name] = "".join(write_reports([result], [name])[name] for result in found)
    return {**written, "values": values_of(found)}


def values_of(results: Iterable[SearchResult]) -> str:
    """Return all values of results."""
    return "".join(line for result in results for line in lines_of(result))


def lines_of(result: SearchResult) -> Iterator[str]:
    """Yield lines with all values of a result."""
    counted, statistics = result.distribution, result.statistics
    facts = {
        "query": (result.query_id, result.query_description, result.query_length, len(result)),
        "database": (
            result.database_name, result.database_subjects, result.database_residues, result.effective_residues,
        ),
        "program": (result.program, result.genetic_code, result.database_genetic_code, result.mode, result.options),
        "scoring": result.scoring.describe(),
        "statistics": getattr(statistics, "parameters", lambda: None)(),
        "why not": (result.no_evalue_reason, result.warning),
        "iterations": (result.iteration, result.converged, [vars(step) for step in result.steps]),
        "first found": result.first_iterations,
        "distribution": None if counted is None else (counted.scores, counted.counts, counted.edges),
        "profile": profile_facts(result.profile),
        "next profile": profile_facts(result.next_profile),
        "columns": result.to_columns(),
    }  # fmt: skip
    yield from (f"{name}: {as_json(value)}\n" for name, value in facts.items())
    for hit in result.hits:
        own = (hit.subject_id, hit.subject_index, hit.subject_length, hit.score, hit.evalue, hit.bit_score)
        taxa = [each.taxid for each in hit.taxa or ()]
        yield f"hit: {as_json([*own, hit.z_score, hit.evalue_published, taxa])}\n"
        for hsp in hit.hsps:
            frames = [frame and frame.number for frame in (hsp.query_frame, hsp.subject_frame)]
            place = (*hsp.query_range, *hsp.subject_range, *frames, hsp.pair.cigar_string)
            yield f"hsp: {as_json([hsp.score, hsp.evalue, hsp.bit_score, *place])}\n"


def profile_facts(profile: swsearch.Profile | None) -> dict[str, Any] | None:
    """Return the values of a profile."""
    if profile is None:
        return None
    made, gaps = profile.alignment, (profile.gap_open, profile.gap_extend)
    rows = None if made is None else (made.identifiers, made.starts, made.ends, made.subjects, made.iterations)
    scores = hashlib.sha256(profile.scores.tobytes()).hexdigest()
    columns = None if made is None else hashlib.sha256(made.columns.tobytes()).hexdigest()
    return {
        "name": (profile.identifier, profile.description, profile.source, profile.iteration, len(profile)),
        "scores": (scores, profile.scale, *gaps), "rows": rows, "columns": columns,
    }  # fmt: skip


def as_json(value: object) -> str:
    return json.dumps(value, default=lambda array: array.tolist())


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def renew(search: str, digests: dict[str, str]) -> None:
    """Replace the digests of a search, and remove those of searches that do not exist."""
    with GOLDEN.open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # other processes renew other searches
        file.seek(0)
        kept = json.loads(file.read() or "{}")
        kept = {
            key: value for key, value in kept.items() if (name := key.split(": ")[0]) in SEARCHES and name != search
        }
        file.truncate(0)
        file.write(json.dumps(kept | digests, indent=0, sort_keys=True) + "\n")


Check = Callable[[str, dict[str, str]], None]


@pytest.fixture
def check(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Check:
    """Compare texts of a search with the digests, in the folder with all that searches read."""
    monkeypatch.chdir(folder)
    is_asked = request.config.getoption("basetemp") and not hasattr(request.config, "workerinput")

    def checked(search: str, texts: dict[str, str]) -> None:
        kept = json.loads(GOLDEN.read_text(encoding="ascii"))
        changed = [name for name, text in texts.items() if digest(text) != kept.get(f"{search}: {name}")]
        for name in texts if is_asked else changed:
            (tmp_path / f"{name}.txt").write_text(texts[name], encoding="utf-8", errors="surrogatepass")
        if changed:
            pytest.fail(
                f"{search}: other bytes than those of golden/reports.json in {'; '.join(changed)}\n"
                f"They are in {tmp_path}, without what may differ between runs.\n"
                "To see what differs, run this here and on an earlier revision, and compare the folders by diff -r:\n"
                f"pytest --basetemp NEW_FOLDER {request.node.nodeid!r}\n"
                "If all of it is wanted: pytest tests/pipeline/test_frozen_reports.py --renew-golden",
                pytrace=False,
            )

    return checked


@pytest.mark.parametrize("search", SEARCHES)
def test_reports(search: str, check: Check, request: pytest.FixtureRequest) -> None:
    texts = all_texts(search)
    if request.config.getoption("--renew-golden"):
        renew(search, {f"{search}: {name}": digest(text) for name, text in texts.items()})
    check(search, texts)
    kept = json.loads(GOLDEN.read_text(encoding="ascii"))
    assert texts.keys() == {name for of, name in (key.split(": ") for key in kept) if of == search}


@pytest.mark.parametrize("search", [name for name, (_, subjects, _) in SEARCHES.items() if subjects not in DNA_FILES])
def test_searcher(search: str, check: Check) -> None:
    queries, subjects, options = SEARCHES[search]
    is_masked = "query_mask" in options  # positives of profiles are others where each hit is aligned alone
    with swsearch.Searcher(subjects, engine="cpu", threads=2, **options) as searcher:
        check(search, {"values": values_of(searcher.search(queries, aligned=is_masked))})


@pytest.mark.parametrize(
    "search",
    [
        "default", "several", "identity", "distribution", "nothing", "profile", "many",
        "blastx, default", "blastx, several", "blastx, frame shift", "tblastn, default", "tblastx, plus",
    ],
)  # fmt: skip
def test_checkpoint(search: str, check: Check, tmp_path: Path) -> None:
    queries, subjects, options = SEARCHES[search]
    kept = tmp_path / "kept"
    asked = {"engine": "cpu", "threads": 2, "checkpoint": kept, **options}
    assert list(swsearch.search(queries, subjects, **asked))
    sizes = {path: path.stat().st_size for path in kept.iterdir()}
    check(search, {"values": values_of(swsearch.search(queries, subjects, **asked))})
    assert sizes == {path: path.stat().st_size for path in kept.iterdir()}, "nothing was searched again"


def test_every_digest_is_of_a_search() -> None:
    kept = [key.split(": ") for key in json.loads(GOLDEN.read_text(encoding="ascii"))]
    assert {search for search, _ in kept} == SEARCHES.keys()
    assert {name for _, name in kept} == {*OUTFMTS, "values"}
