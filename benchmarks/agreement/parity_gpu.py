"""Part ``gpu`` of `parity.py`: all scores, and the output, of the GPU engine and of the CPU engine."""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.support.common import ENVIRONMENT, heading, table, timed
from benchmarks.support.fingerprint import fingerprint
from benchmarks.support.timing import say
from swsearch import Database
from swsearch.alphabet import PROTEIN
from swsearch.engines import create_engine
from swsearch.inputs import Query, read_queries

FORMATS = ("6", "0")
"""Output formats that are compared; 0 holds every alignment."""
STREAMED_MEMORY = 100 << 20
"""GPU memory of the third comparison."""
SHOWN = 5
"""Differences that are printed for each query, and lines of each output."""
Scores = npt.NDArray[np.integer[Any]]


class Reference(NamedTuple):
    """A reference file: who made it, of which inputs and with which outputs; scores; the output in format 6."""

    about: dict[str, Any]
    scores: Scores
    rows: str


def database_digest(database: Database) -> str:
    """Return the SHA-256 of the subjects' lengths, their order in the file and the residues as they are stored."""
    digest = hashlib.sha256(np.ascontiguousarray(database.lengths, dtype="<i4").tobytes())
    places, residues = hashlib.sha256(), hashlib.sha256()
    for chunk in database.chunks(64 << 20):
        places.update(np.ascontiguousarray(chunk.subjects, dtype="<i8").tobytes())
        residues.update(chunk.residues.tobytes())
    digest.update(places.digest() + residues.digest())
    return digest.hexdigest()


def queries_digest(queries: list[Query]) -> str:
    """Return the SHA-256 of the queries' names and residues."""
    digest = hashlib.sha256()
    for query in queries:
        digest.update(f"{query.identifier} {query.description}\n{len(query.codes)}\n".encode())
        digest.update(query.codes.tobytes())
    return digest.hexdigest()


def run_search(options: argparse.Namespace, engine: str, outfmt: str) -> str:
    """Return what `swsearch search` writes, in a folder in which the files always have the same names."""
    with tempfile.TemporaryDirectory(prefix="swsearch-parity-") as name:
        folder = Path(name)
        (folder / "database.h5").symlink_to(options.database.resolve())
        (folder / "queries.fasta").symlink_to(options.queries.resolve())
        line = [sys.executable, "-m", "swsearch", "search", "queries.fasta", "database.h5", "--engine", engine]
        line += ["--outfmt", outfmt, "--output", "output.txt", "--quiet"]
        seconds = timed(lambda: subprocess.run(line, cwd=folder, env=ENVIRONMENT, check=True))
        say(f"search --engine {engine} --outfmt {outfmt}: {seconds:.1f} s")
        text = (folder / "output.txt").read_bytes().decode("utf-8", "surrogateescape")
    # format 0 begins with the version, which a checkout that is not installed does not know
    return text.partition("\n")[2] if outfmt == "0" else text


def text_digest(text: str) -> str:
    """Return the SHA-256 of an output."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def write_reference(options: argparse.Namespace) -> None:
    """Score and search with the CPU engine, and write the reference; scores in 16 bits if all of them fit."""
    name = options.engine or "cpu"
    queries = read_queries(options.queries)
    with Database.open(options.database) as database, create_engine(name) as engine:
        about: dict[str, Any] = {
            "made": heading(__file__, ["numpy"]), "database": database_digest(database),
            "queries": queries_digest(queries), "outputs": {}, "engine": engine.description,
        }  # fmt: skip
        scores: Scores = swsearch.score(options.queries, database, engine=engine)
    limits = np.iinfo(np.int16)
    if not scores.size or (scores.min() >= limits.min and scores.max() <= limits.max):
        scores = scores.astype(np.int16)
    texts = {outfmt: run_search(options, name, outfmt) for outfmt in FORMATS}
    about["outputs"] = {each: {"sha256": text_digest(text), "bytes": len(text)} for each, text in texts.items()}
    rows = np.frombuffer(texts["6"].encode("utf-8", "surrogateescape"), dtype=np.uint8)
    with options.write.open("wb") as stream:
        np.savez_compressed(stream, about=np.array(json.dumps(about)), scores=scores, rows=rows)
    size = options.write.stat().st_size
    say(f"{options.write}: {scores.size:,} scores as {scores.dtype}, {size / 1e6:.1f} MB")


def read_reference(path: Path, database: Database, queries: list[Query]) -> Reference:
    """Read a reference; exit unless it is one of this database and these queries."""
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            rows = file["rows"].tobytes().decode("utf-8", "surrogateescape")
            reference = Reference(about, file["scores"], rows)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{path}: is no reference that this script wrote ({error})")
    if about["database"] != database_digest(database):
        sys.exit(f"{path}: was made with another database: other residues, lengths or order than {database.name}")
    if about["queries"] != queries_digest(queries):
        sys.exit(f"{path}: was made with other queries")
    assert reference.scores.shape == (len(queries), database.n_subjects)
    return reference


def passes(engine: str, database: Database, queries: list[Query]) -> Iterator[tuple[str, Scores]]:
    """Yield the name and the scores of each way in which the engine can be asked."""
    records = [(query.identifier, PROTEIN.decode(query.codes)) for query in queries]
    yield "all at once", swsearch.score(records, database, engine=engine)
    yield "one at a time", np.stack([swsearch.score([each], database, engine=engine)[0] for each in records])
    if engine == "gpu":
        from swsearch.engines.gpu.engine import GpuEngine

        with GpuEngine(memory=STREAMED_MEMORY) as small:
            yield f"streamed, {STREAMED_MEMORY >> 20} MiB", swsearch.score(records, database, engine=small)


def compare_engines(options: argparse.Namespace) -> tuple[list[str], int]:
    """Compare with a reference; return lines, and how many scores and outputs differ."""
    queries, name = read_queries(options.queries), options.engine or "gpu"
    rows: list[list[object]] = []
    output_rows: list[list[object]] = []
    examples: list[str] = []
    with ExitStack() as opened:
        database = opened.enter_context(Database.open(options.database))
        reference = read_reference(options.reference, database, queries)
        with create_engine(name) as engine:
            description = engine.description
        found = dict(passes(name, database, queries))
        differing = 0
        for number, query in enumerate(queries):
            wanted, counts = reference.scores[number], []
            for way, scores in found.items():
                places = np.flatnonzero(scores[number] != wanted)
                counts.append(f"{len(places):,}")
                differing += len(places)
                examples += [
                    f"{way}: {query.identifier} (length {len(query.codes)}) x {database.identifier(place)} (length "
                    f"{database.lengths[place]}): {scores[number, place]}, expected {wanted[place]}"
                    for place in places[:SHOWN].tolist()
                ]
            rows.append([query.identifier, len(query.codes), f"{wanted.size:,}", f"{wanted.max():,}", *counts])
        counts_of = f"{database.n_subjects:,} subjects, {database.n_residues:,} residues"
    outputs_differing = 0
    for outfmt, wanted in reference.about["outputs"].items():
        text = run_search(options, name, outfmt)
        digest = text_digest(text)
        is_equal = digest == wanted["sha256"]
        outputs_differing += not is_equal
        output_rows.append(
            [outfmt, f"{wanted['bytes']:,}", f"{len(text):,}", digest[:16], "yes" if is_equal else "NO"]
        )
        if not is_equal and options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"format{outfmt}.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
        if not is_equal and outfmt == "6":
            lines = difflib.unified_diff(reference.rows.splitlines(), text.splitlines(), "expected", "found", n=0)
            examples += [line.rstrip() for line in islice(lines, 2 + 2 * SHOWN)]
    return [
        f"engine {description}",
        f"kernels {fingerprint().kernels}, engine {fingerprint().engine}",
        f"{options.queries.name}: {len(queries)} queries; {options.database.name}: {counts_of}",
        f"reference: {reference.about['engine']}; {reference.about['made'][0]}",
        f"compared: {reference.scores.size * len(found):,} scores, differing: {differing:,}; "
        f"outputs compared: {len(FORMATS)}, differing: {outputs_differing}",
        "",
        *table(["query", "length", "subjects", "best score", *(f"differing, {each}" for each in found)], rows),
        "",
        *table(["output format", "bytes expected", "bytes", "SHA-256", "equal"], output_rows),
        *examples,
    ], differing + outputs_differing  # fmt: skip
