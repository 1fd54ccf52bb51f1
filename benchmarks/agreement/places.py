"""Are the bytes of a search the same wherever it runs? One file, volumes, several databases, workers, several GPUs.

The subjects become a database, which is split into four volumes; one file on the CPU of this process says what is
right. The same searches then run in every other place: the volumes by their manifest and as a list of four databases,
by 1, 2 and 4 workers of this machine and by workers of a scheduler, on one GPU opened twice, with the database
resident and streamed, and by workers that have a GPU. Each search writes formats 6, 0, xml, json, jsonl and sam, with
published and fitted statistics, with masks, filters, several alignments, sorted by score, cut among ties, in the
other modes and in iterations; a GPU also aligns many pairs. Databases have the same name everywhere, in folders of
their own.

Of the subjects, every tenth has a stretch in lower case, and forty copies of the first query are among them, so that
masks mask something and ties are ties. --keep keeps the databases and the SHA-256 of every output, and what stands
there is not run again: a run can go on, and another machine can compare with what this one found.

Needs: FASTA files of queries and subjects; dask.distributed for workers, an NVIDIA GPU for GPUs, of which places
without are left out. With 20 queries and Swiss-Prot about ten minutes for each place on two cores.
Run:   python -m benchmarks.agreement.places QUERIES20 SPROT.fasta [--places WORD ...] [--cases WORD ...] [--few 6]
           [--keep FOLDER] [--out benchmarks/results/places.txt]
Exit code 1 if any byte differs, or a command fails.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.agreement.place_cases import ADDRESS, CASES, PLACES, Case, Place
from benchmarks.support.common import (
    Records,
    arguments,
    finish,
    heading,
    read_titles,
    sha256_of,
    swsearch,
    table,
    write,
)
from swsearch.version import version

DATABASE = "database.h5"
"""File name of a database or manifest at every place; reports show it."""

VOLUMES = 4
COPIES = 40
LEFT_OUT = 50
"""Subjects that are named in the lists of identifiers."""

FORMATS = {"tsv": "6", "txt": "0", "xml": "xml", "json": "json", "jsonl": "jsonl", "sam": "sam"}
"""Formats by the ends of their files' names."""


LACKING = {"workers": "dask.distributed", "gpu": "a GPU", "gpus": "several GPUs"}


class Result(NamedTuple):
    """Output of a command.

    Parameters
    ----------
    command : str
        The command as typed, without outputs.
    digests : dict of str to str
        SHA-256 by format.
    sizes : dict of str to int
        Bytes by format.
    seconds : float
        Time of the command.
    problem : str
        Reason of a failure; empty if the command wrote its output.
    """

    command: str
    digests: dict[str, str]
    sizes: dict[str, int]
    seconds: float
    problem: str = ""


class Data:
    """The files that commands are run with, in folders for each kind of subjects.

    Parameters
    ----------
    folder : Path
        Holds them, from an earlier run or from this one.
    queries, subjects : Path
        FASTA.
    few : int
        Queries of the cases that take few.
    """

    def __init__(self, folder: Path, queries: Path, subjects: Path, few: int) -> None:
        self.folder, self._few = folder, few
        self._digests = folder / "digests.json"
        self.about = {"queries": sha256_of(queries), "subjects": sha256_of(subjects), "few": few}
        self._results: dict[str, dict[str, Result]] = {}
        if self._digests.is_file():
            self._load()
        if not (folder / "list" / "ids.txt").is_file():
            self._make(queries, subjects)

    def _load(self) -> None:
        kept = json.loads(self._digests.read_text())
        if kept["about"] != self.about:
            sys.exit(f"{self._digests}: is of other queries or subjects, or another --few: {kept['about']}")
        self._results = {
            place: {case: Result(**result) for case, result in cases.items()}
            for place, cases in kept["results"].items()
        }

    def known(self, place: Place, case: Case) -> Result | None:
        """Return what is known of an earlier run of the same command."""
        known = self._results.get(place.name, {}).get(case.name)
        return (
            known if known is not None and known.command == shlex.join(words_of(self, place, case, ADDRESS)) else None
        )

    def keep(self, place: Place, case: Case, result: Result) -> None:
        """Keep what a command wrote, unless it failed."""
        if not result.problem:
            self._results.setdefault(place.name, {})[case.name] = result
            found = {
                name: {key: each._asdict() for key, each in cases.items()} for name, cases in self._results.items()
            }
            self._digests.write_text(json.dumps({"about": self.about, "results": found}, indent=1))

    def subjects_of(self, kind: str) -> list[str]:
        """Return the subjects of a command, in the folder of their kind."""
        if kind != "list":
            return [DATABASE]
        return sorted(path.name for path in (self.folder / kind).glob("*.h5"))

    def _make(self, queries: Path, subjects: Path) -> None:
        """Write queries and identifiers, build the database and split it."""
        say(f"{self.folder}: makes databases of {subjects.name}")
        for kind in ("one", "manifest", "list"):
            (self.folder / kind).mkdir(parents=True, exist_ok=True)
        asked = sorted(read_titles(queries), key=lambda record: len(record[1]))
        found = planted(read_titles(subjects), asked[0])
        fasta = write(self.folder / "subjects.fasta", found)
        swsearch("db", "build", fasta, "-o", self.folder / "one" / DATABASE, "--quiet")
        fasta.unlink()
        split(self.folder / "one" / DATABASE, self.folder / "manifest" / DATABASE, VOLUMES)
        for volume in sorted((self.folder / "manifest").glob("*.h5")):
            if volume.name != DATABASE:
                (self.folder / "list" / volume.name).symlink_to(volume)
        identifiers = [title.split(maxsplit=1)[0] for title, _ in found]
        named = random.Random(7).sample(identifiers, min(LEFT_OUT, len(identifiers)))
        for kind in ("one", "manifest", "list"):  # ids.txt last: it says that all is there
            write(self.folder / kind / "all.fasta", lowered(asked))
            write(self.folder / kind / "few.fasta", lowered(asked[: self._few]))
            write(self.folder / kind / "pairs.fasta", found[:: max(1, len(found) // 400)])
            (self.folder / kind / "ids.txt").write_text("\n".join([*named, "copy_3", "copy_20"]) + "\n")


def split(database: Path, manifest: Path, volumes: int) -> None:
    """Split a database into volumes of like size that lie beside their manifest."""
    size = database.stat().st_size // volumes * 21 // 20 + (32 << 10)
    swsearch("db", "split", database, "-o", manifest, "--volume-size", size, "--quiet")


def lowered(records: Records, every: int = 1) -> Records:
    """Write a stretch of every n-th record in lower case."""
    chance, found = random.Random(11), []
    for number, (title, letters) in enumerate(records):
        if number % every == 0:
            first = chance.randrange(max(1, len(letters) - 30))
            letters = letters[:first] + letters[first : first + 30].lower() + letters[first + 30 :]  # noqa: PLW2901
        found.append((title, letters))
    return found


def planted(records: Records, query: tuple[str, str]) -> Records:
    """Put copies of a query among the records, at equal distances, and some letters in lower case."""
    found, distance = lowered(records, 10), max(1, len(records) // COPIES)
    for copy in reversed(range(COPIES)):
        found.insert(min(len(records), copy * distance), (f"copy_{copy} of {query[0]}", query[1]))
    return found


def say(text: str) -> None:
    """Tell on stderr what is going on."""
    print(text, file=sys.stderr, flush=True)


def words_of(data: Data, place: Place, case: Case, address: str) -> list[str]:
    """Return the command of a case in a place, from the word after ``swsearch`` on, without outputs."""
    queries = f"{case.queries}.fasta"
    if case.is_align:
        return ["align", queries, "pairs.fasta", *shlex.split(case.options), *shlex.split(place.options)]
    subjects = data.subjects_of(place.subjects)
    options = [*shlex.split(case.options), *shlex.split(place.options)]
    return ["search", queries, *subjects, *(address if word == ADDRESS else word for word in options)]


def run(data: Data, place: Place, case: Case, address: str) -> Result:
    """Run a case in a place."""
    with tempfile.TemporaryDirectory(prefix="swsearch-places-") as made:
        outputs = Path(made)
        words = words_of(data, place, case, address)
        command = shlex.join(words_of(data, place, case, ADDRESS))
        if case.is_align:
            words += ["-o", str(outputs / "hits.pairs")]
        else:
            for end, outfmt in FORMATS.items():
                words += ["-o", str(outputs / f"hits.{end}"), "--outfmt", outfmt]
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "swsearch", *words, "--quiet"],
            cwd=data.folder / place.subjects, capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds = time.monotonic() - started
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no word"]
            return Result(command, {}, {}, seconds, f"exit code {done.returncode}: {last[0]}")
        written = {path.suffix[1:]: comparable(data, place, path) for path in sorted(outputs.iterdir())}
    digests = {end: hashlib.sha256(each).hexdigest() for end, each in written.items()}
    return Result(command, digests, {end: len(each) for end, each in written.items()}, seconds)


def comparable(data: Data, place: Place, path: Path) -> bytes:
    """Return an output with the names that may differ exchanged: the version, and that of several databases."""
    found = version()
    said = [f"swsearch {found}", f"VN:{found}", f'"version":"{found}"']
    written = path.read_bytes()
    for each in said:  # a checkout that is not installed has none
        written = written.replace(each.encode(), each.replace(found, "VERSION").encode())
    names = data.subjects_of(place.subjects)
    if len(names) > 1:  # lines may be broken between names
        written = re.sub(rb",\s+".join(re.escape(name.encode()) for name in names), DATABASE.encode(), written)
    return written


def named(name: str, words: Sequence[str], names: Sequence[str]) -> bool:
    """Say whether a name is asked for: by itself, or by a word in it that is no name; without words all are."""
    return not words or any(name == word or (word not in names and word in name) for word in words)


def chosen(places: Sequence[str], cases: Sequence[str]) -> Iterator[tuple[Place, list[Case]]]:
    """Yield the places that are asked for and can be had, with their cases; the first place always."""
    there = {"workers": find_spec("distributed") is not None, "gpu": n_gpus() > 0, "gpus": n_gpus() > 1}
    found = [case for case in CASES if named(case.name, cases, [each.name for each in CASES])]
    for number, place in enumerate(PLACES):
        if number and not named(place.name, places, [each.name for each in PLACES]):
            continue
        if lacking := [LACKING[need] for need in place.needs.split() if not there[need]]:
            say(f"{place.name}: left out, for want of {' and '.join(lacking)}")
            continue
        aligns = not number or ("gpu" in place.needs and place.subjects == "one")
        yield place, [case for case in found if aligns or not case.is_align]


@cache
def n_gpus() -> int:
    """Count the GPUs that the engine can use."""
    from swsearch.engines.gpu.device import list_devices
    from swsearch.errors import SwsearchError

    try:
        return len(list_devices())
    except SwsearchError:
        return 0


@contextlib.contextmanager
def scheduler(places: Iterable[Place], folder: Path) -> Iterator[str]:
    """Run a scheduler with two workers, of one thread each, where a place asks for it; give its address."""
    if not any(ADDRESS in place.options for place in places):
        yield ""
        return
    from benchmarks.support.workers import Workers

    with Workers(folder, 2) as made:
        yield made.address


def differing(right: Result, found: Result) -> str:
    """Say what of a case differs; empty if nothing does."""
    if found.problem or right.problem:
        return found.problem or "nothing to compare with"
    ends = sorted({*right.digests, *found.digests})
    return ", ".join(FORMATS.get(end, end) for end in ends if right.digests.get(end) != found.digests.get(end))


def report(results: dict[str, dict[str, Result]]) -> tuple[list[str], int]:
    """Return the tables' lines, and how many outputs differ or are missing."""
    right = results[PLACES[0].name]
    rows: list[list[object]] = []
    for case, result in right.items():
        each = [result.digests.get(end, "")[:12] for end in FORMATS]
        if "pairs" in result.digests:
            each[0] = result.digests["pairs"][:12]
        rows.append([case, *each, f"{sum(result.sizes.values()):,}", f"{result.seconds:.1f}"])
    other: list[list[object]] = []
    wrong: list[str] = []
    for place, cases in results.items():
        found = [f"{place}: {case}: {text}" for case in cases if (text := differing(right[case], cases[case]))]
        n_outputs = sum(len(result.digests) for result in cases.values())
        n_bytes = sum(sum(result.sizes.values()) for result in cases.values())
        seconds = sum(result.seconds for result in cases.values())
        whole = hashlib.sha256("".join(each for one in cases.values() for each in one.digests.values()).encode())
        equal = f"NO, {len(found)} are not" if found else "yes"
        other.append([place, len(cases), n_outputs, f"{n_bytes:,}", f"{seconds:.0f}", whole.hexdigest()[:16], equal])
        wrong += found
    columns = ["one file", *(f"format {outfmt}" for outfmt in FORMATS.values()), "bytes", "s"]
    heads = ["place", "commands", "outputs", "bytes", "s", "SHA-256 of their SHA-256", "each equal to one file's"]
    lines = ["SHA-256 (their first 12 digits) of what one file gives:", "", *table(columns, rows), ""]
    lines += ["Every output in every place:", "", *table(heads, other), ""]
    n_compared = sum(len(cases) for cases in results.values())
    lines.append(f"{n_compared} commands in {len(results)} places; {len(wrong)} differ or failed")
    return [*lines, *wrong], len(wrong)


def main() -> None:
    parser = arguments(__doc__, files=False)
    parser.add_argument("queries", type=Path)
    parser.add_argument("subjects", type=Path)
    parser.add_argument(
        "--places", nargs="+", default=[], metavar="WORD", help="places of these names, or with these words in them"
    )
    parser.add_argument("--cases", nargs="+", default=[], metavar="WORD", help="cases, likewise")
    parser.add_argument(
        "--few", type=int, default=6, help="the shortest queries, for most cases, default %(default)s"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where databases and digests are, or will be")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swsearch-places-") as made:
        folder = (options.keep or Path(made)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        lines, n_wrong = compare(Data(folder, options.queries, options.subjects, options.few), options)
    finish(lines, options.out)
    if n_wrong:
        sys.exit(1)


def compare(data: Data, options: argparse.Namespace) -> tuple[list[str], int]:
    """Run what is asked for; return the report and how many commands differ."""
    work = list(chosen(options.places, options.cases))
    results: dict[str, dict[str, Result]] = {}
    with scheduler([place for place, _ in work], data.folder) as address:
        for place, cases in work:
            for case in cases:
                result = data.known(place, case)
                if result is None:
                    result = run(data, place, case, address)
                    data.keep(place, case, result)
                results.setdefault(place.name, {})[case.name] = result
                right = results[PLACES[0].name][case.name]
                say(f"{place.name}: {case.name}: {result.seconds:.1f} s, {differing(right, result) or 'same'}")
    lines, n_wrong = report(results)
    what = f"{options.queries.name}, the {options.few} shortest where few are enough; {options.subjects.name}"
    top = [*heading(__file__, ["distributed"]), f"{what}, with {COPIES} copies of a query; {VOLUMES} volumes", ""]
    return [*top, *lines], n_wrong


if __name__ == "__main__":
    main()
