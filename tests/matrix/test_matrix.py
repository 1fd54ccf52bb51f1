"""Every feature in every place: what each finds is what a plain search in Python finds, or a reason stands here.

`FEATURES` are kinds of searches, `PLACES` ways to run them. A cell runs both on tiny data and compares tables of hits
and the profiles that are made. `REFUSED` has the cells that cannot be, and why: these have to be refused in fact.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from Bio.Data.CodonTable import standard_dna_table

import swsearch
from support import command_line
from support.fake_gpu import fake_engine
from support.serving import Served, serving
from support.taxa import write_taxonomy
from swsearch.db import split_database
from swsearch.errors import InputError, SwsearchError
from swsearch.options.row import Interface, rows_of
from swsearch.pipeline.table.search import SearchTable
from swsearch.server.settings import ServerLimits, ServerSettings

OUTFMT = "6 qseqid sseqid score evalue bitscore pident qstart qend sstart send cigar"

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
CODONS = {residue: codon for codon, residue in sorted(standard_dna_table.forward_table.items())}


@dataclass(frozen=True)
class Feature:
    """A kind of search.

    Parameters
    ----------
    options : dict
        Keywords of `swsearch.search`; a value that names a file is a file of the folder.
    queries, subjects : str
        Files of the folder; several subjects are separated by blanks.
    """

    options: dict[str, Any] = field(default_factory=dict)
    queries: str = "queries.fasta"
    subjects: str = "db.h5"


FEATURES = {
    "plain": Feature(),
    "translate": Feature({"translate": True}, "dna.fasta"),
    "DNA database": Feature(subjects="genome.h5"),
    "DNA queries, DNA database": Feature({"translate": True}, "dna.fasta", "genome.h5"),
    "profiles": Feature(queries="profile.json"),
    "iterations": Feature({"iterations": 3}),
    "iterations, taxids": Feature({"iterations": 2, "taxids": (9606, 562)}),
    "masks": Feature({"query_mask": "lower", "subject_mask": "tantan"}),
    "filters": Feature({"min_identity": 40.0, "min_query_coverage": 30.0, "max_hits": 7, "evalue": 1000.0}),
    "taxids": Feature({"taxids": (9606,), "exclude_taxids": (63221,)}),
    "frame shifts": Feature({"translate": True, "frame_shift": 15}, "dna.fasta"),
    "several alignments": Feature({"max_alignments": 3, "evalue": 1000.0}),
    "global": Feature({"mode": "global", "max_hits": 9}),
    "semi-global": Feature({"mode": "semiglobal"}),
    "published statistics": Feature({"statistics": "published"}),
    "identifiers": Feature({"include_ids": ("r1", "r5", "r40", "x3"), "evalue": 1000.0}),
    "query range": Feature({"query_loc": (10, 60)}, "one.fasta"),
    "own matrix": Feature({"matrix": "own.txt", "gap_open": 9, "gap_extend": 2}),
    "structure": Feature({"alphabet": "tea"}, subjects="tea.h5"),
    "structure, own matrix": Feature({"alphabet": "3di", "matrix": "own.txt"}, subjects="3di.json"),
    "distribution": Feature({"distribution": True}),
    "saved profiles": Feature({"iterations": 2, "keep_profiles": True}, "one.fasta"),
    "volumes": Feature(subjects="volumes.json"),
    "volumes of DNA": Feature(subjects="genomes.json"),
    "several databases": Feature(subjects="first.h5 rest.h5"),
    "several DNA databases": Feature(subjects="genome.h5 genome2.h5"),
}

ONE_NAME = "a request names one database of the server; a manifest of several files is one (see volumes)"
NO_KERNEL = "the recurrence with frame shifts has no kernel; the CPU computes it, whichever engine is chosen"
A_REPORT = "profiles are no report of the HTTP API; Client and the command line have them"
NO_ENDS = "ends of frames are no ends of proteins"
NO_SUBJECTS = "windows of DNA are no subjects, so that a database has no distribution of its scores"

REFUSED = {
    ("frame shifts", "GPU"): NO_KERNEL,
    ("saved profiles", "serve"): A_REPORT,
    **{("several databases", place): ONE_NAME for place in ("serve", "search http://", "Client")},
    **{("several DNA databases", place): ONE_NAME for place in ("serve", "search http://", "Client")},
}
"""Cells that are not there, and why."""

IMPOSSIBLE = {
    "global, DNA database": (
        Feature({"mode": "global"}, subjects="genome.h5"),
        NO_ENDS,
    ),
    "semi-global, DNA database": (
        Feature({"mode": "semiglobal"}, subjects="genome.h5"),
        NO_ENDS,
    ),
    "global, translate": (
        Feature({"mode": "global", "translate": True}, "dna.fasta"),
        NO_ENDS,
    ),
    "distribution, DNA database": (Feature({"distribution": True}, subjects="genome.h5"), NO_SUBJECTS),
    "frame shifts, DNA database": (
        Feature({"translate": True, "frame_shift": 15}, "dna.fasta", "genome.h5"),
        "shifts on both sides are another recurrence",
    ),
    "frame shifts, published statistics": (
        Feature({"translate": True, "frame_shift": 15, "statistics": "published"}, "dna.fasta"),
        "there are no published constants with shifts",
    ),
    "frame shifts, several alignments": (
        Feature({"translate": True, "frame_shift": 15, "max_alignments": 2}, "dna.fasta"),
        "the next alignment of a pair takes another recurrence",
    ),
    "iterations, translate": (
        Feature({"iterations": 2, "translate": True}, "dna.fasta"),
        "a profile has the positions of one protein, and the frames of a query are up to six",
    ),
    "iterations, DNA database": (
        Feature({"iterations": 2}, subjects="genome.h5"),
        "a profile is the same if its subjects are, and alignments in DNA are no subjects that could be the same",
    ),
    "iterations, no statistics": (
        Feature({"iterations": 2, "statistics": "none"}),
        "hits are included by their E-values",
    ),
    "iterations, structure": (
        Feature({"iterations": 2, "alphabet": "tea"}, subjects="tea.h5"),
        "pseudo-counts are those of amino acids",
    ),
    "structure, proteins": (Feature({"alphabet": "tea"}), "the same letters stand for something else"),
    "proteins, structure": (Feature(subjects="tea.h5"), "the same letters stand for something else"),
    "structure without a matrix": (
        Feature({"alphabet": "3di"}, subjects="3di.json"),
        "there is no matrix of 3Di that may be shipped",
    ),
}
"""Combinations that every place refuses, each with its reason."""

IMPOSSIBLE_AT = ("command line", "search", "Searcher", "serve", "search http://", "Client", "cluster", "checkpoint")


@dataclass(frozen=True)
class Rooms:
    """Resources of the places: a folder with all files, a server and a cluster of this process.

    Parameters
    ----------
    folder : Path
        Folder with the files.
    served : Served
        Server of the folder's databases.
    dask : distributed.Client
        Client of a cluster with two workers.
    engine : Engine
        The GPU engine on a made-up device.
    scratch : Path
        A folder of the test.
    """

    folder: Path
    served: Served
    dask: Any
    engine: Any
    scratch: Path

    def python(self, feature: Feature) -> tuple[Any, Any, dict[str, Any]]:
        """Return queries, subjects and options as Python takes them."""
        options = dict(feature.options)
        if "matrix" in options:
            options["matrix"] = str(self.folder / options["matrix"])
        subjects = [self.folder / name for name in feature.subjects.split()]
        return self.folder / feature.queries, subjects if len(subjects) > 1 else subjects[0], options

    def words(self, feature: Feature) -> list[str]:
        """Return the options as the command line takes them; profiles go to a file."""
        rows, words = rows_of(SearchTable, Interface.COMMAND), []
        for name, value in self.python(feature)[2].items():
            if name == "distribution":
                words += ["-o", str(self.scratch / "page.html")]  # the report that shows it
            elif name == "keep_profiles":
                words += ["--save-profile", str(self.scratch / "profile.json")]
            elif name == "include_ids":
                (self.scratch / "ids.txt").write_text("\n".join(value))
                words += ["--include-ids", str(self.scratch / "ids.txt")]
            else:
                text = value if name == "matrix" else rows[name].kind.format(value)
                words += [f"--{rows[name].key}", *([] if value is True else [str(text)])]
        return words

    def json(self, feature: Feature) -> dict[str, Any]:
        """Return the options as JSON takes them."""
        options = dict(feature.options)
        if "matrix" in options:
            options["matrix"] = {"text": (self.folder / options["matrix"]).read_text()}
        if "query_loc" in options:
            options["query_loc"] = "{}-{}".format(*options["query_loc"])
        return options


Found = tuple[str, list[bytes]]
"""A table of hits, and of each profile that was made its scores and the alignment that it is made of."""


def found(results: Iterable[swsearch.SearchResult]) -> Found:
    """Return what results say."""
    taken, text = list(results), io.StringIO()
    swsearch.write(taken, text, OUTFMT)
    return text.getvalue(), [facts(each.next_profile) for each in taken if each.next_profile is not None]


def facts(profile: swsearch.Profile) -> bytes:
    assert profile.alignment is not None
    return profile.scores.tobytes() + profile.alignment.columns.tobytes()


# places: each runs a feature, and returns what is found


def by_search(rooms: Rooms, feature: Feature, **more: Any) -> Found:
    queries, subjects, options = rooms.python(feature)
    with swsearch.search(queries, subjects, **{"engine": "cpu", "threads": 1} | options | more) as results:
        return found(results)


def by_searcher(rooms: Rooms, feature: Feature) -> Found:
    queries, subjects, options = rooms.python(feature)
    with swsearch.Searcher(subjects, engine="cpu", **options) as searcher:
        searcher.search("MKVLAW" * 2 if "translate" not in options else "ACGTACGTAC")  # a search of others before
        return found(searcher.search(queries))


def by_checkpoint(rooms: Rooms, feature: Feature) -> Found:
    queries, subjects, options = rooms.python(feature)
    given = {"engine": "cpu", "checkpoint": rooms.scratch / "kept", **options}
    with swsearch.search(queries, subjects, **given) as ended_early:
        next(ended_early)
    first = by_search(rooms, feature, checkpoint=rooms.scratch / "kept")
    again = by_search(rooms, feature, checkpoint=rooms.scratch / "kept")
    assert first == again
    return again


def by_cluster(rooms: Rooms, feature: Feature) -> Found:
    return by_search(rooms, feature, client=rooms.dask, threads=None)


def by_gpu(rooms: Rooms, feature: Feature) -> Found:
    return by_search(rooms, feature, engine=rooms.engine)


def by_client(rooms: Rooms, feature: Feature) -> Found:
    queries, subjects, options = rooms.python(feature)
    with swsearch.Client(f"{rooms.served.url}/{name_of(subjects)}") as client:
        profiles = ["profile json"] if options.pop("keep_profiles", False) else []
        with client.search(queries, outputs=[OUTFMT, *profiles], **options) as job:
            profile = rooms.scratch / "profile.json"
            profile.write_bytes(b"".join(piece for name in profiles for piece in job.download(name)))
            text = b"".join(job.download(OUTFMT)).decode()
            return text, [facts(swsearch.Profile.read(profile))] if profiles else []


def by_command(rooms: Rooms, feature: Feature, *subjects: str) -> Found:
    named = subjects or [str(rooms.folder / name) for name in feature.subjects.split()]
    where = [] if subjects else ["--engine", "cpu"]
    out = ["-o", str(rooms.scratch / "hits.tsv"), "--outfmt", OUTFMT]
    words = rooms.words(feature)
    out += ["--outfmt", "html"] if "-o" in words else []
    done = command_line.run("search", rooms.folder / feature.queries, *named, *where, "-q", *out, *words)
    if done.returncode:
        raise InputError(done.stderr)
    profile = rooms.scratch / "profile.json"
    return (
        (rooms.scratch / "hits.tsv").read_text(),
        [facts(swsearch.Profile.read(profile))] if profile.exists() else [],
    )


def by_url(rooms: Rooms, feature: Feature) -> Found:
    return by_command(rooms, feature, f"{rooms.served.url}/{name_of(rooms.python(feature)[1])}")


def by_http(rooms: Rooms, feature: Feature) -> Found:
    queries, subjects, _ = rooms.python(feature)
    body = {"database": name_of(subjects), "queries": queries.read_text(), "options": rooms.json(feature)}
    reply = rooms.served.post("/jobs?wait=60", body)
    if reply.status != 202:
        raise InputError(reply.error["message"])
    number, columns = OUTFMT.split(" ", 1)
    path = f"/jobs/{reply.json['id']}/results?format={number}&columns={columns.replace(' ', ',')}"
    answer = rooms.served.get(path)
    assert answer.status == 200, answer.body
    return answer.body.decode(), []


def name_of(subjects: Any) -> str:
    if isinstance(subjects, list):
        raise InputError("several databases have no one name")
    return str(Path(subjects).stem)


PLACES: dict[str, Callable[[Rooms, Feature], Found]] = {
    "command line": by_command,
    "search": lambda rooms, feature: by_search(rooms, feature, threads=2),
    "Searcher": by_searcher,
    "serve": by_http,
    "search http://": by_url,
    "Client": by_client,
    "cluster": by_cluster,
    "checkpoint": by_checkpoint,
    "GPU": by_gpu,
}


# the data


def relative(draw: random.Random, parent: str, change: float) -> str:
    return "".join(draw.choice(AMINO_ACIDS) if draw.random() < change else letter for letter in parent)


def coding(protein: str) -> str:
    return "".join(CODONS[letter] for letter in protein.upper())


def fasta(path: Path, records: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f">{header}\n{letters}\n" for header, letters in records))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all files that features name."""
    folder, draw = tmp_path_factory.mktemp("matrix"), random.Random(47)
    parents = ["".join(draw.choice(AMINO_ACIDS) for _ in range(n)) for n in (90, 120)]
    taxids = (9606, 10090, 562, 63221)
    records = [
        (
            f"r{k} relative OX={taxids[k % 4]}",
            relative(draw, parents[k % 2], 0.012 * k) + parents[k % 2][:30] * (k % 3),
        )
        for k in range(50)
    ]
    records += [(f"x{k} other OX=562", "".join(draw.choice(AMINO_ACIDS) for _ in range(60))) for k in range(10)]
    queries = [
        (f"q{k} query", letters[:20] + letters[20:30].lower() + letters[30:]) for k, letters in enumerate(parents)
    ]
    dna = [
        ("d0 shifted", coding(parents[0][:40]) + "A" + coding(parents[0][40:])),
        ("d1 plain", "AC" + coding(parents[1])),
    ]
    genes = [
        (f"c{k} contig", "ACGTT" * (k % 7) + coding(records[k][1]) + "ACG" * k + coding(records[-1 - k][1]))
        for k in range(16)
    ]
    fasta(folder / "queries.fasta", [*queries, ("q2 none", "")])
    fasta(folder / "one.fasta", queries[:1])
    fasta(folder / "dna.fasta", dna)
    write_taxonomy(folder / "taxonomy")
    given = {"taxids": "header", "taxonomy": folder / "taxonomy", "mask": "tantan"}
    for name, some in (("db", records), ("first", records[:25]), ("rest", records[25:])):
        swsearch.Database.build(fasta(folder / f"{name}.fasta", some), folder / f"{name}.h5", **given).close()
    split_database(folder / "db.h5", folder / "volumes.json", volume_size=25_000)
    for alphabet in ("tea", "3di"):
        made = folder / "db.fasta", folder / f"{alphabet}.h5"
        swsearch.Database.build(*made, alphabet=alphabet, mask="lower").close()
    split_database(folder / "3di.h5", folder / "3di.json", volume_size=25_000)
    for name, some in (("genome", genes[:10]), ("genome2", genes[10:])):
        swsearch.Database.build(fasta(folder / f"{name}.fasta", some), folder / f"{name}.h5", translate=True).close()
    split_database(folder / "genome.h5", folder / "genomes.json", volume_size=20_000)
    rows = [[7 if a == b else -1 - (i + k) % 4 for k, b in enumerate(AMINO_ACIDS)] for i, a in enumerate(AMINO_ACIDS)]
    lines = [f"{letter} {' '.join(map(str, row))}" for letter, row in zip(AMINO_ACIDS, rows, strict=True)]
    (folder / "own.txt").write_text("\n".join([f"  {' '.join(AMINO_ACIDS)}", *lines, ""]))
    with swsearch.search(queries[:1], folder / "db.h5", engine="cpu", iterations=2, keep_profiles=True) as results:
        next(results).next_profile.save(folder / "profile.json")
    return folder


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    names = ("db.h5", "genome.h5", "genomes.json", "volumes.json", "tea.h5", "3di.json")
    settings = ServerSettings(
        tuple(folder / name for name in names), folder / "state", ServerLimits(), "cpu", 1, workers=1
    )
    with serving(settings) as found:
        yield found


@pytest.fixture(scope="module")
def plain() -> dict[str, Found]:
    """Return what plain searches found so far, by feature."""
    return {}


@pytest.fixture
def rooms(
    folder: Path, served: Served, dask_client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Rooms]:
    with fake_engine(monkeypatch) as engine:
        yield Rooms(folder, served, dask_client, engine, tmp_path)


CELLS = [(feature, place) for feature in FEATURES for place in PLACES]


@pytest.mark.parametrize(("feature", "place"), CELLS)
def test_a_cell(feature: str, place: str, rooms: Rooms, plain: dict[str, Found]) -> None:
    asked = FEATURES[feature]
    if (feature, place) in REFUSED:
        with pytest.raises((SwsearchError, AssertionError)):
            refused(PLACES[place](rooms, asked))
        return
    if feature not in plain:
        plain[feature] = by_search(rooms, asked)
        assert plain[feature][0].count("\n") > 3, "the feature finds too little to compare"
    assert PLACES[place](rooms, asked) == plain[feature]


def refused(found: Found) -> None:
    """Raise if something was found, but not what the feature is about."""
    assert found[1], "no profiles"


@pytest.mark.parametrize("place", IMPOSSIBLE_AT)
@pytest.mark.parametrize("combination", IMPOSSIBLE)
def test_what_mathematics_refuses_is_refused_everywhere(combination: str, place: str, rooms: Rooms) -> None:
    asked, _ = IMPOSSIBLE[combination]
    if combination == "distribution, DNA database" and place in ("command line", "serve", "search http://", "Client"):
        pytest.skip("a report asks for it, and does without")
    with pytest.raises(SwsearchError):
        PLACES[place](rooms, asked)


def test_every_refused_cell_is_one_of_the_matrix_and_has_a_reason() -> None:
    assert set(REFUSED) <= set(CELLS)
    assert all(reason.strip() for reason in [*REFUSED.values(), *(reason for _, reason in IMPOSSIBLE.values())])


def test_the_words_of_a_request_are_those_of_json(rooms: Rooms) -> None:
    assert json.dumps([rooms.json(each) for each in FEATURES.values()])
