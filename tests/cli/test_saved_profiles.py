"""``swsearch search --save-profile``: each format by the file's name, as swsearch and other programs read it."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.command_line import fails, run
from support.samples import sample
from support.serving import Served, serving
from support.small_searches import QUERIES, build
from swsearch.profiles.hmm import HMMER_BACKGROUND
from swsearch.profiles.profile import Profile
from swsearch.server.settings import ServerSettings

DATA = Path(__file__).parents[2] / "examples" / "data"
ENDINGS = [".json", ".jsonl", ".asn", ".smp", ".chk", ".pssm", ".hmm", ".hhm"]
OF_ONE = [".asn", ".smp", ".chk", ".pssm", ".hhm"]
FAMILY = "sp|Q05639|EF1A2_HUMAN"
RESIDUES = 463
"""Of the family's query."""

MSA = "sp_Q05639_EF1A2_HUMAN.a3m"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Queries, and subjects: what one of them finds in the sample, and an eighth of the others."""
    made = tmp_path_factory.mktemp("saved")
    queries = (DATA / "queries.fasta").read_text().split(">")[1:]
    (made / "five.fasta").write_text("".join(f">{one}" for one in queries))
    (made / "one.fasta").write_text("".join(f">{one}" for one in queries if one.startswith(FAMILY)))
    (made / "subjects.fasta").write_bytes(gzip.decompress((DATA / "swissprot_sample.fasta.gz").read_bytes()))
    family = hits(made, made / "one.fasta", "--iterations", 2)
    subjects = (made / "subjects.fasta").read_text().split(">")[1:]
    chosen = [one for k, one in enumerate(subjects) if one.split()[0] in family or k % 8 == 0]
    (made / "subjects.fasta").write_text("".join(f">{one}" for one in chosen))
    return made


def saved(folder: Path, name: str, *options: object, queries: object = "one.fasta") -> Path:
    """A profile that two iterations make, with the pseudo-counts of a matrix as other programs, in a file."""
    words = [
        "--engine",
        "cpu",
        "--iterations",
        2,
        "--preset",
        "default",
        "-o",
        "hits.tsv",
        "--save-profile",
        name,
        "-q",
        *options,
    ]
    done = run("search", queries, "subjects.fasta", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / name


def hits(folder: Path, queries: Path, *options: object) -> dict[str, tuple[int, float]]:
    """Scores and E-values of the subjects that a search finds with E-values below 0.001."""
    columns = ["--outfmt", "6 qseqid sseqid score evalue", "--engine", "cpu", "-q"]
    done = run("search", queries, "subjects.fasta", *columns, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {row[1]: (int(row[2]), float(row[3])) for row in rows if float(row[3]) < 1e-3}


@pytest.fixture(scope="module")
def family(folder: Path) -> dict[str, tuple[int, float]]:
    found = hits(folder, saved(folder, "family.json"))
    assert len(found) > 25
    return found


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_saved_finds_the_family_again(
    ending: str, folder: Path, family: dict[str, tuple[int, float]]
) -> None:
    """Scores of other formats are without the profile's scale of 1.15; HHMs have pseudo-counts of the reader's."""
    path = saved(folder, f"again{ending}")
    found = hits(folder, path)
    assert len(found.keys() ^ family.keys()) <= 1
    ratios = [family[name][0] / found[name][0] for name in found.keys() & family.keys()]
    least, most = {".json": (1, 1), ".jsonl": (1, 1), ".hhm": (0.6, 1.2)}.get(ending, (1.0, 1.3))
    assert least <= min(ratios) <= max(ratios) <= most
    profile = Profile.read(path)
    assert (profile.identifier, len(profile)) == ("again" if ending == ".pssm" else FAMILY, RESIDUES)
    assert profile.scores.max() > 6


def test_scores_of_published_statistics_are_kept_to_the_digit(folder: Path) -> None:
    options = ("--statistics", "published")
    wanted = hits(folder, saved(folder, "published.json", *options), *options)
    for ending in (".asn", ".pssm"):
        assert hits(folder, saved(folder, f"published{ending}", *options), *options) == wanted


def test_several_queries_are_several_models_of_hmmer(folder: Path) -> None:
    path = saved(folder, "five.hmm", queries="five.fasta")
    names = re.findall(r"^NAME  (\S+)", path.read_text(), re.MULTILINE)
    assert names == [
        line.split()[0][1:] for line in (folder / "five.fasta").read_text().splitlines() if line[0] == ">"
    ]


@pytest.mark.parametrize(("ending", "letters"), sample(
    [(ending, letters) for ending in [*OF_ONE, ".hmm"] for letters in ("W", "X", "XXXXXX", "MKVXLLAW*C", "mkvlaagW")],
    lambda case: case[1] in ("W", "XXXXXX"),
))  # fmt: skip
def test_short_and_odd_queries_are_saved(ending: str, letters: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "q.fasta").write_text(f">q\n{letters}\n")
    path = saved(folder, str(tmp_path / f"p{ending}"), "--query-mask", "lower", queries=tmp_path / "q.fasta")
    profile = Profile.read(path)
    assert len(profile) == len(letters)
    assert np.abs(profile.scores.astype(int)).max() <= 20


@pytest.mark.parametrize("ending", [".asn", ".hmm", ".hhm"])
def test_nothing_is_saved_where_there_is_no_profile(ending: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / f"p{ending}"
    (tmp_path / "q.fasta").write_text(">q\n\n")
    done = run("search", tmp_path / "q.fasta", "subjects.fasta", "--save-profile", path, cwd=folder)
    fails(done, 1, "no query has residues, expected at least one with residues; leave --save-profile out")
    (tmp_path / "q.fasta").write_text(f">q\n{'ACGT' * 20}\n")
    done = run("search", tmp_path / "q.fasta", "subjects.fasta", "--save-profile", path, cwd=folder)
    fails(done, 1, "DNA")
    done = run("search", "one.fasta", "subjects.fasta", "--save-profile", path, full=(1,), cwd=folder)
    assert done.returncode == 6
    assert [one.name for one in tmp_path.iterdir()] == ["q.fasta"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small database and queries of its family."""
    made = tmp_path_factory.mktemp("served")
    build(made)
    (made / "q.fa").write_bytes(QUERIES)
    return made


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Served]:
    settings = ServerSettings((place / "db.h5",), place / "state", engine="cpu", threads=1, workers=1)
    with serving(settings) as found:
        yield found


def test_a_search_on_a_server_saves_the_same(served: Served, place: Path, tmp_path: Path) -> None:
    words = ["--iterations", 2, "-o", tmp_path / "hits.tsv", "-q", "--save-profile"]
    for where, name in ((f"{served.url}/db", "there.hmm"), (place / "db.h5", "here.hmm")):
        done = run("search", place / "q.fa", where, *words, tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "there.hmm").read_bytes() == (tmp_path / "here.hmm").read_bytes()
    done = run("search", place / "q.fa", f"{served.url}/db", *words, tmp_path / "there.asn")
    fails(done, 1, "got 4 profiles, expected one in a file of PSI-BLAST's ASN.1")
    done = run("search", place / "q.fa", f"{served.url}/db", *words, tmp_path / "there.txt")
    fails(done, 1, "expected a format of profiles")
    assert {path.name for path in tmp_path.iterdir()} == {"hits.tsv", "there.hmm", "here.hmm"}


# other programs


def program(name: str) -> str:
    """A program's path; the test is skipped where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def said_by(*words: object, folder: Path) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.peer
@pytest.mark.parametrize("ending", sample([".asn", ".chk"], lambda ending: ending == ".asn"))
def test_psiblast_finds_the_same_with_the_same_evalues(ending: str, folder: Path) -> None:
    """Without composition-based statistics: scores and E-values are those of published statistics, to the digit."""
    psiblast, path = program("psiblast"), saved(folder, f"psiblast{ending}")
    said_by(program("makeblastdb"), "-in", "subjects.fasta", "-dbtype", "prot", "-out", "blast", folder=folder)
    columns = "6 qseqid sseqid score evalue"
    options = ["-db", "blast", "-comp_based_stats", 0, "-seg", "no", "-outfmt", columns]
    theirs = said_by(psiblast, "-in_pssm", path, *options, folder=folder).splitlines()
    done = run("search", path, "subjects.fasta", "--statistics", "published", "--outfmt", columns, "-q", cwd=folder)
    ours = {tuple(line.split("\t")[:2]): line.split("\t") for line in done.stdout.splitlines()}
    compared = [(line.split("\t"), ours[name]) for line in theirs if (name := tuple(line.split("\t")[:2])) in ours]
    best = {name: line for line, _ in reversed(compared) for name in [line[1]]}
    assert len(best) > 25
    assert all(int(line[2]) <= int(ours[FAMILY, name][2]) for name, line in best.items())  # psiblast may miss a part
    assert sum(ours[FAMILY, name] != line for name, line in best.items()) <= 1


@pytest.mark.peer
def test_psiblast_makes_scores_of_the_frequencies(folder: Path, family: dict[str, tuple[int, float]]) -> None:
    psiblast, path = program("psiblast"), saved(folder, "psiblast.asn")
    theirs = said_by(
        psiblast, "-in_pssm", path, "-subject", "subjects.fasta", "-outfmt", "6 sseqid bitscore evalue", folder=folder
    )
    found = {line.split("\t")[0] for line in theirs.splitlines() if float(line.split("\t")[2]) < 1e-3}
    assert len(found ^ family.keys()) <= 3


@pytest.mark.peer
def test_psiblast_and_we_print_the_same_percentages(folder: Path) -> None:
    """Of one alignment; information differs as in benchmarks/results/psiblast_pssm.txt."""
    psiblast = program("psiblast")
    rows = folder / "rows"
    saved(folder, "percentages.pssm", "--save-msa", rows)
    blocks = [block.partition("\n") for block in (rows / MSA).read_text().split(">")[1:]]
    texts = [re.sub("[a-z.]", "", letters.replace("\n", "")) for _, _, letters in blocks]
    (folder / "msa.fasta").write_text("".join(f">s{k}\n{text}\n" for k, text in enumerate(texts)))
    said_by(
        psiblast, "-in_msa", "msa.fasta", "-subject", "one.fasta", "-out_ascii_pssm", "theirs.pssm", folder=folder
    )
    tables = []
    for name in ("percentages.pssm", "theirs.pssm"):
        lines = [line.split() for line in (folder / name).read_text().splitlines()]
        tables.append(np.array([line[2:43] for line in lines if len(line) == 44], dtype=float))
    ours, theirs = tables
    assert ours.shape == theirs.shape == (RESIDUES, 41)
    assert np.corrcoef(ours[:, 20:40].ravel(), theirs[:, 20:40].ravel())[0, 1] > 0.99
    assert np.corrcoef(ours[:, 40], theirs[:, 40])[0, 1] > 0.8
    assert (np.abs(ours[:, :20] - theirs[:, :20]) <= 1).mean() > 0.95


@pytest.mark.peer
def test_hmmsearch_finds_the_family(folder: Path, family: dict[str, tuple[int, float]]) -> None:
    hmmsearch, path = program("hmmsearch"), saved(folder, "five.hmm", queries="five.fasta")
    said_by(hmmsearch, "--cpu", 1, "--tblout", "hits.txt", path, "subjects.fasta", folder=folder)
    rows = [line.split() for line in (folder / "hits.txt").read_text().splitlines() if line[0] != "#"]
    found = [row[0] for row in rows if row[2] == FAMILY and float(row[4]) < 1e-3]
    assert len(set(found) ^ family.keys()) <= 2
    bits = {row[0]: float(row[5]) for row in rows if row[2] == FAMILY}
    assert bits[found[0]] == pytest.approx(674, abs=40)  # what a model of hmmbuild's has
    table = said_by(program("hmmstat"), path, folder=folder)
    models = [line.split() for line in table.splitlines() if line and line[0] != "#"]
    assert [model[1] for model in models][1] == FAMILY
    assert models[1][5] == str(RESIDUES)
    assert 0.3 < float(models[1][6]) < 0.8  # bits per position; hmmbuild's has 0.60


@pytest.mark.peer
@pytest.mark.exhaustive
def test_hmmsearch_evalues_are_those_of_chance(folder: Path) -> None:
    """Of random sequences about as many have E-values of at most 5 as there should be: 25 with five queries."""
    hmmsearch, path = program("hmmsearch"), saved(folder, "five.hmm", queries="five.fasta")
    generator = np.random.default_rng(11)
    letters, shares = np.array(list("ARNDCQEGHILKMFPSTWYV")), HMMER_BACKGROUND / HMMER_BACKGROUND.sum()
    lines = ["".join(generator.choice(letters, 300, p=shares)) for _ in range(2000)]
    (folder / "random.fasta").write_text("".join(f">r{k}\n{line}\n" for k, line in enumerate(lines)))
    said_by(hmmsearch, "--max", "--cpu", 1, "-E", 10, "--tblout", "chance.txt", path, "random.fasta", folder=folder)
    rows = [line.split() for line in (folder / "chance.txt").read_text().splitlines() if line[0] != "#"]
    below = sum(float(row[4]) <= 5 for row in rows)
    assert 8 <= below <= 60


def hh_hit(text: str) -> list[str]:
    """Probability, E-value, P-value and score of the first hit of a report of HH-suite."""
    lines = text.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith(" No Hit"))
    return lines[first + 1][35:].split()[:4]


@pytest.mark.peer
def test_hh_suite_takes_models_as_hhmakes(folder: Path) -> None:
    hhalign, hhmake = program("hhalign"), program("hhmake")
    rows = folder / "hh"
    path = saved(folder, "ours.hhm", "--save-msa", rows)
    said_by(hhmake, "-i", rows / MSA, "-M", "a3m", "-o", "theirs.hhm", "-v", 0, folder=folder)
    found = []
    for query, target in (("theirs", "theirs"), ("ours", "theirs"), ("ours", "ours")):
        said_by(hhalign, "-i", f"{query}.hhm", "-t", f"{target}.hhm", "-o", "x.hhr", "-v", 0, folder=folder)
        found.append(hh_hit((folder / "x.hhr").read_text()))
    assert all(float(hit[0]) == 100 for hit in found)
    scores = [float(hit[3]) for hit in found]
    assert scores[1] == pytest.approx(scores[0], rel=0.07)
    assert scores[2] == pytest.approx(scores[0], rel=0.07)
    texts = [(folder / f"{name}.hhm").read_text() for name in ("ours", "theirs")]
    neffs = [float(text[text.index("\nNEFF") + 5 :].split()[0]) for text in texts]
    assert neffs[0] == pytest.approx(neffs[1], abs=0.5)
    profile = Profile.read(path)
    profile.save(folder / "without.hhm")  # a profile that was read has no alignment
    said_by(hhalign, "-i", "without.hhm", "-t", "theirs.hhm", "-o", "x.hhr", "-v", 0, folder=folder)
    assert float(hh_hit((folder / "x.hhr").read_text())[0]) == 100


@pytest.mark.peer
def test_hhsearch_finds_a_model_of_hhmakes(folder: Path) -> None:
    """In a database of two, whose names are all that it takes of their states of 219 letters."""
    hhsearch, hhmake = program("hhsearch"), program("hhmake")
    rows = folder / "five"
    saved(folder, "five.jsonl", "--save-msa", rows, queries="five.fasta")
    path = saved(folder, "query.hhm")
    models = {}
    for name in ("sp_Q05639_EF1A2_HUMAN", "sp_P24723_KPCL_HUMAN"):
        said_by(hhmake, "-i", rows / f"{name}.a3m", "-M", "a3m", "-o", f"{name}.hhm", "-v", 0, folder=folder)
        models[name] = (folder / f"{name}.hhm").read_bytes()
    lengths = {name: int(re.search(rb"LENG +(\d+)", model)[1]) for name, model in models.items()}  # type: ignore[index]
    parts = {
        "hhm": models,
        "a3m": {name: (rows / f"{name}.a3m").read_bytes() for name in models},
        "cs219": {name: b"A" * lengths[name] for name in models},
    }
    for kind, entries in parts.items():
        data, index = b"", ""
        for name in sorted(entries):
            index += f"{name}\t{len(data)}\t{len(entries[name]) + 1}\n"
            data += entries[name] + b"\0"
        (folder / f"hh_{kind}.ffdata").write_bytes(data)
        (folder / f"hh_{kind}.ffindex").write_text(index)
    said_by(hhsearch, "-i", path, "-d", "hh", "-o", "x.hhr", "-v", 0, "-cpu", 1, folder=folder)
    text = (folder / "x.hhr").read_text()
    assert re.search(rf"^  1 {re.escape(FAMILY)} ", text, re.MULTILINE)
    assert float(hh_hit(text)[0]) == 100
