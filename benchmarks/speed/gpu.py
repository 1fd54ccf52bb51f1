"""Measure the GPU engine: kernels, scan, loading, whole command, and with less memory than the database needs.

Parts, of which --only takes some:
  singles   the database resident on the GPU, then each query alone,
  batch     the same with all queries as one group,
  jobs      from 1 to 1,000 queries, titin, and a kinase with a database of its relatives, in a search's groups,
  cudasw    CUDASW++4.0 with the same queries and database, if --cudasw names its program and database,
  short     the same with peptides of 8 to 60 residues cut from the queries, one at a time and 200 at once,
  load      from opening the HDF5 file (in the page cache) to all residues on the GPU, in a fresh engine,
  command   `swsearch search QUERIES DATABASE --engine gpu --max-hits 10 --outfmt 6` as a process, kernels cached,
  streamed  the batch with 100 MiB of GPU memory beside the resident one, in turn; each reads the database anew,
  equal     200,000 made-up subjects of 512 residues, of the database's composition,
  memory    what is allocated on the GPU.
Searches look for the 10 best hits with E <= 10. Times are medians of --runs after a run that is not counted. Kernel
time is the time in which kernels run by the GPU's clock; wall time is that of the Python call, with thresholds,
launches and hits. GCUPS count residues of query and subjects, padding is no work.

Needs: an NVIDIA GPU, a database from `swsearch db build`, a quiet machine; about two minutes with Swiss-Prot.
Part jobs needs Swiss-Prot's titin and a kinase in it. matplotlib for the plot.
Run:   python -m benchmarks.speed.gpu DATABASE.h5 QUERIES.fasta [--only singles,batch]
           [--cudasw ALIGN PREFIX] [--out benchmarks/results/gpu.txt]
       python -m benchmarks.speed.gpu --from benchmarks/results/gpu.json
       python -m benchmarks.speed.gpu --turns FOLDER [--out benchmarks/results/gpu_turns.txt]
--out also writes the numbers (gpu.json) and the plot (gpu.png) beside the text; parts that are there already, from
the same kernels, engine, device and database, are kept. --from measures nothing and needs no GPU: it writes the text
and the plot again, beside the JSON. --turns compares two revisions by what `gpu_session.sh turns` leaves in a folder.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

from benchmarks.speed.gpu_parts import PARTS, Setup
from benchmarks.speed.gpu_report import compare_turns, report
from benchmarks.support import plots
from benchmarks.support.common import arguments, finish, heading, version_of
from benchmarks.support.fingerprint import fingerprint
from swsearch import Database
from swsearch.inputs import read_queries


def about(setup: Setup) -> dict[str, Any]:
    """Return what the results are results of."""
    kernels, hash_of_engine = fingerprint()
    with setup.engine() as engine:
        info = getattr(engine, "info", None)
        description = engine.description
    database, queries = setup.database, setup.queries
    return {
        "heading": heading(__file__, ["pycuda", "cuda-bindings", "numpy"]),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "device": info.name if info else description,
        "capability": ".".join(map(str, info.capability)) if info else "",
        "multiprocessors": info.multiprocessors if info else 0,
        "device_memory": info.memory if info else 0,
        "driver_cuda": ".".join(map(str, info.driver_version)) if info else "",
        "pycuda": version_of("pycuda"),
        "description": description,
        "python": platform.python_version(),
        "kernels": kernels,
        "engine": hash_of_engine,
        "database": setup.database_path.name,
        "subjects": database.n_subjects,
        "residues": database.n_residues,
        "residue_bytes": database.residue_bytes,
        "queries_file": setup.queries_path.name,
        "queries": len(queries),
        "query_residues": sum(len(query.codes) for query in queries),
        "runs": setup.runs,
    }


def kept_parts(path: Path, now: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an earlier run that measured the same thing on the same device."""
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
        same = ("kernels", "engine", "device", "driver_cuda", "residues", "subjects", "query_residues")
        if all(earlier["about"][name] == now[name] for name in same):
            return {name: earlier[name] for name in PARTS if name in earlier}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}


def parts_named(text: str) -> list[str]:
    """Read --only."""
    names = text.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}, expected some of {','.join(PARTS)}")
    return names


def write_text(results: dict[str, Any], stored: Path) -> None:
    """Write the report beside the numbers."""
    stored.with_suffix(".txt").write_text("\n".join(report(results)) + "\n", encoding="utf-8")


def measure_parts(setup: Setup, only: list[str], stored: Path | None) -> dict[str, Any]:
    """Measure what is asked for; results are written after each part, so that nothing is lost when time runs out."""
    results: dict[str, Any] = {"about": about(setup)}
    if stored is not None:
        stored.parent.mkdir(parents=True, exist_ok=True)
        results |= kept_parts(stored, results["about"])
    for name, measure in PARTS.items():
        if name not in only or (name == "cudasw" and setup.cudasw is None):
            continue
        started = time.perf_counter()
        results[name] = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), **measure(setup)}
        print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)
        if stored is not None:
            stored.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            write_text(results, stored)
    return results


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__, files=False)
    parser.add_argument("database", type=Path, nargs="?", help="made by swsearch db build")
    parser.add_argument("queries", type=Path, nargs="?", help="FASTA")
    parser.add_argument("--from", dest="stored", type=Path, metavar="FILE.json", help="write what --out wrote again")
    parser.add_argument("--turns", type=Path, metavar="FOLDER", help="compare turn-old-N.json and turn-new-N.json")
    parser.add_argument("--only", type=parts_named, default=list(PARTS), metavar="PART,...", help="default: all")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each, default %(default)s")
    parser.add_argument(
        "--cudasw", type=Path, nargs=2, metavar=("ALIGN", "PREFIX"), help="CUDASW++4.0 and its database"
    )
    parser.add_argument("--engine", default="gpu", help="another engine, to try this script; default %(default)s")
    options = parser.parse_args()
    if sum(given is not None for given in (options.stored, options.turns, options.queries)) != 1:
        parser.error("expected one of DATABASE.h5 QUERIES.fasta, --from FILE.json and --turns FOLDER")
    return options


def main() -> None:
    options = read_options()
    if options.turns is not None:
        finish(compare_turns(options.turns), options.out)
        return
    if options.stored is not None:
        results = json.loads(options.stored.read_text(encoding="utf-8"))
        write_text(results, options.stored)
        plots.draw("benchmarks.speed.gpu_plot", options.stored)
        return
    stored = options.out.with_suffix(".json") if options.out is not None else None
    with Database.open(options.database) as database:
        queries = read_queries(options.queries)
        setup = Setup(
            options.database, options.queries, database, queries, options.engine, options.runs, options.cudasw
        )
        results = measure_parts(setup, options.only, stored)
    finish(report(results), options.out)
    if stored is not None and "singles" in results:
        plots.draw("benchmarks.speed.gpu_plot", stored)


if __name__ == "__main__":
    main()
