"""Compare all scores of the GPU engine, and what `swsearch search` prints with it, with those of the CPU engine.

The CPU engine makes the reference, on a machine without a GPU (--write): every score, and the SHA-256 of the output
of `swsearch search` in formats 6 and 0. On the machine with the GPU and with the same database and queries, every
score is compared with the reference three times (--reference): all queries at once, one query at a time, and all at
once with the database streamed through 100 MiB of GPU memory; and the two searches run. The reference knows the
residues and lengths of its database and its queries by their SHA-256, and others are refused.

Needs: an NVIDIA GPU for the comparison, two minutes. The reference of 20 queries and Swiss-Prot takes 12 minutes on
two cores.
Run:   python -m benchmarks.agreement.gpu_parity DATABASE.h5 QUERIES.fasta --write REFERENCE.npz
       python -m benchmarks.agreement.gpu_parity DATABASE.h5 QUERIES.fasta --reference REFERENCE.npz
           [--out benchmarks/results/gpu_parity.txt]
Exit code 1 if anything differs; the first differences are printed.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import swsearch
from benchmarks.support.common import arguments, finish, heading, table
from benchmarks.support.fingerprint import fingerprint
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
    """What a reference file holds.

    Parameters
    ----------
    about : dict
        Who made it, the SHA-256 of its inputs and, by format, of the outputs.
    scores : ndarray, shape (n_queries, n_subjects), int16 or int32
        Matrix units, queries and subjects in input order.
    rows : str
        The output in format 6, so that differences can be shown.
    """

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


def compact(scores: Scores) -> Scores:
    """Return the scores in 16 bits if all of them fit."""
    limits = np.iinfo(np.int16)
    small = not scores.size or (scores.min() >= limits.min and scores.max() <= limits.max)
    return scores.astype(np.int16) if small else scores


def say_progress(label: str, cells: int) -> Callable[[int], None]:
    """Return a function that prints every tenth of the work, with the time that it took."""
    begun, done, told = time.perf_counter(), 0, 0

    def progress(more: int) -> None:
        nonlocal done, told
        done += more
        if done * 10 // cells > told:
            told = done * 10 // cells
            print(f"{label}: {told * 10} %, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)

    return progress


def run_search(database: Path, queries: Path, engine: str, outfmt: str) -> str:
    """Return what `swsearch search` writes, in a folder in which the files always have the same names."""
    with tempfile.TemporaryDirectory(prefix="swsearch-parity-") as name:
        folder = Path(name)
        (folder / "database.h5").symlink_to(database.resolve())
        (folder / "queries.fasta").symlink_to(queries.resolve())
        # the package that this script imports, also where it is not installed
        paths = [str(Path(swsearch.__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
        line = [sys.executable, "-m", "swsearch", "search", "queries.fasta", "database.h5", "--engine", engine]
        begun = time.perf_counter()
        done = subprocess.run(
            [*line, "--outfmt", outfmt, "--output", "output.txt", "--quiet"],
            cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{' '.join(line)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        text = (folder / "output.txt").read_bytes().decode("utf-8", "surrogateescape")
        seconds = time.perf_counter() - begun
        print(f"search --engine {engine} --outfmt {outfmt}: {seconds:.1f} s", file=sys.stderr, flush=True)
    # format 0 begins with the version, which a checkout that is not installed does not know
    return text.partition("\n")[2] if outfmt == "0" else text


def text_digest(text: str) -> str:
    """Return the SHA-256 of an output."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def write_reference(options: argparse.Namespace, database: Database, queries: list[Query]) -> None:
    """Score and search with the CPU engine, and write the reference."""
    cells = sum(len(query.codes) for query in queries) * database.n_residues
    about: dict[str, Any] = {
        "made": heading(__file__, ["numpy"]),
        "database": database_digest(database),
        "queries": queries_digest(queries),
        "outputs": {},
    }
    with create_engine(options.engine or "cpu") as engine:
        about["engine"] = engine.description
        progress = say_progress("scores", cells)
        scores = compact(swsearch.score(options.queries, database, engine=engine, progress=progress))
    rows = ""
    for outfmt in FORMATS:
        text = run_search(options.database, options.queries, options.engine or "cpu", outfmt)
        about["outputs"][outfmt] = {"sha256": text_digest(text), "bytes": len(text)}
        if outfmt == "6":
            rows = text
    with options.write.open("wb") as stream:
        np.savez_compressed(
            stream,
            about=np.array(json.dumps(about)),
            scores=scores,
            rows=np.frombuffer(rows.encode("utf-8", "surrogateescape"), dtype=np.uint8),
        )
    size = options.write.stat().st_size
    print(f"{options.write}: {scores.size:,} scores as {scores.dtype}, {size / 1e6:.1f} MB", file=sys.stderr)


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
    single = np.zeros((len(queries), database.n_subjects), dtype=np.int32)
    for number, record in enumerate(records):
        single[number] = swsearch.score([record], database, engine=engine)[0]
    yield "one at a time", single
    if engine == "gpu":
        from swsearch.engines.gpu.engine import GpuEngine

        with GpuEngine(memory=STREAMED_MEMORY) as small:
            yield f"streamed, {STREAMED_MEMORY >> 20} MiB", swsearch.score(records, database, engine=small)


def compare_scores(
    reference: Reference, found: dict[str, Scores], database: Database, queries: list[Query]
) -> tuple[list[list[object]], list[str], int]:
    """Count the differing scores of each query and pass; return table rows, examples and the count of all."""
    rows: list[list[object]] = []
    examples: list[str] = []
    total = 0
    for number, query in enumerate(queries):
        wanted = reference.scores[number]
        counts = []
        for name, scores in found.items():
            places = np.flatnonzero(scores[number] != wanted)
            counts.append(f"{len(places):,}")
            total += len(places)
            for place in places[:SHOWN].tolist():
                examples.append(
                    f"{name}: {query.identifier} (length {len(query.codes)}) x {database.identifier(place)} (length "
                    f"{database.lengths[place]}): {scores[number, place]}, expected {wanted[place]}"
                )
        rows.append([query.identifier, len(query.codes), f"{wanted.size:,}", f"{wanted.max():,}", *counts])
    return rows, examples, total


def compare_outputs(reference: Reference, options: argparse.Namespace) -> tuple[list[list[object]], list[str], int]:
    """Run the searches; return table rows, differing lines and the count of differing outputs."""
    rows: list[list[object]] = []
    examples: list[str] = []
    differing = 0
    for outfmt in FORMATS:
        text = run_search(options.database, options.queries, options.engine or "gpu", outfmt)
        wanted, digest = reference.about["outputs"][outfmt], text_digest(text)
        equal = digest == wanted["sha256"]
        differing += not equal
        rows.append([outfmt, f"{wanted['bytes']:,}", f"{len(text):,}", digest[:16], "yes" if equal else "NO"])
        if not equal and options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"format{outfmt}.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
        if not equal and outfmt == "6":
            lines = difflib.unified_diff(reference.rows.splitlines(), text.splitlines(), "expected", "found", n=0)
            examples += [line.rstrip() for line in islice(lines, 2 + 2 * SHOWN)]
    return rows, examples, differing


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("database", type=Path, help="made by swsearch db build")
    parser.add_argument("queries", type=Path, help="FASTA")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE.npz", help="make the reference")
    what.add_argument("--reference", type=Path, metavar="FILE.npz", help="compare with a reference")
    parser.add_argument("--engine", help="default: cpu with --write, gpu with --reference")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where outputs that differ are written")
    options = parser.parse_args()
    queries = read_queries(options.queries)
    with Database.open(options.database) as database:
        if options.write is not None:
            write_reference(options, database, queries)
            return
        reference = read_reference(options.reference, database, queries)
        name = options.engine or "gpu"
        with create_engine(name) as engine:
            description = engine.description
        found = dict(passes(name, database, queries))
        rows, examples, differing = compare_scores(reference, found, database, queries)
        output_rows, output_examples, outputs_differing = compare_outputs(reference, options)
        counts = f"{database.n_subjects:,} subjects, {database.n_residues:,} residues"
    lines = [
        *heading(__file__, ["numpy"]),
        f"engine {description}",
        f"kernels {fingerprint().kernels}, engine {fingerprint().engine}",
        f"{options.queries.name}: {len(queries)} queries; {options.database.name}: {counts}",
        f"reference: {reference.about['engine']}; {reference.about['made'][0]}",
        f"compared: {reference.scores.size * len(found):,} scores, differing: {differing:,}; "
        f"outputs compared: {len(FORMATS)}, differing: {outputs_differing}",
        "",
        *table(["query", "length", "subjects", "best score", *(f"differing, {each}" for each in found)], rows),
        "",
        *table(["output format", "bytes expected", "bytes", "SHA-256", "equal"], output_rows),
        *examples,
        *output_examples,
    ]
    finish(lines, options.out)
    sys.exit(1 if differing or outputs_differing else 0)


if __name__ == "__main__":
    main()
