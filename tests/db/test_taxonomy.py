"""Databases that know the taxa of their subjects: built, joined, cut, appended to, verified; and hostile dumps."""

from __future__ import annotations

import gzip
import subprocess
import tarfile
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.command_line import fails, run
from support.db_helpers import put, wrong
from support.samples import sample
from support.taxa import SEQUENCE, SUBJECTS, dump, write_subjects, write_taxonomy
from swsearch.db import Database, append_database, build_database, verify_database
from swsearch.errors import DatabaseDamageError, InputError, SwsearchWarning
from swsearch.options.kinds import OnDuplicate

pytestmark = pytest.mark.filterwarnings("ignore::swsearch.errors.SwsearchWarning")

TAXIDS: list[list[int]] = [[taxid] if taxid else [] for _, taxid in SUBJECTS]
NONE: list[list[int]] = [[]] * len(SUBJECTS)
WITH_TAXA: dict[str, Any] = {"taxids": "header", "taxonomy": "taxonomy"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with the taxonomy, sequences, a database of both, and one of the sequences alone."""
    monkeypatch.chdir(tmp_path)
    write_taxonomy(Path("taxonomy"))
    write_subjects(Path("in.fasta"))
    build_database("in.fasta", "plain.h5")
    build_database("in.fasta", "db.h5", **WITH_TAXA)


def taxids(database: Database) -> list[list[int]]:
    found = database.taxids_of(range(database.n_subjects))
    return [found.data[a:b].tolist() for a, b in pairwise(found.offsets)]


def verified(path: str) -> list[list[int]]:
    """Verify a database; return the taxids of its subjects."""
    verify_database(path)
    with Database.open(path) as database:
        return taxids(database)


def fasta(path: str, *headers: bytes) -> str:
    Path(path).write_bytes(b"".join(b">%s\n%s\n" % (header, SEQUENCE.encode()) for header in headers))
    return path


def refuses_to_build(problem: str, **options: Any) -> None:
    before = sorted(Path().iterdir())
    with pytest.raises(InputError) as error:
        build_database("in.fasta", "a.h5", **options)
    assert problem in str(error.value) and sorted(Path().iterdir()) == before


def test_what_a_database_knows_of_its_taxa() -> None:
    assert verified("db.h5") == TAXIDS
    with Database.open("db.h5") as database:
        tree = database.taxonomy
        assert tree.taxa.tolist() == [1, 2, 562, 2759, 9443, 9598, 9606, 10090, 40674, 63221, 83333, 131567]
        assert tree.descendants([9606]).tolist() == [9606, 63221]
        assert tree.descendants([40674, 4242]).tolist() == [4242, 9443, 9598, 9606, 10090, 40674, 63221]
        assert tree.taxon(9606)[1:] == ("Homo sapiens", "human", "primates", "Eukaryota")
        assert tree.taxon(9598).common == "chimpanzee" and tree.taxon(4242)[1:] == ("", "", "", "")
        above = [("primates", "Eukaryota"), ("mammals", "Eukaryota"), ("eubacteria", "Bacteria"), ("", "")]
        assert [tree.taxon(taxid)[3:] for taxid in (63221, 10090, 83333, 1)] == above
        assert [t for t in (9606, 666, 9605777, 1423, 777, 12345, 4242) if tree.has(t)] == [9606, 666, 9605777]
        assert (
            tree.current_taxid(666) == 9606
            and tree.current_taxid(9606) == 9606
            and tree.taxon(666)[1] == "Homo sapiens"
        )
        assert database.subjects_of([9606, 4242, 5]).tolist() == [0, 7]
        info = database.info()
        assert (info["format_version"], info["n_with_taxid"], info["n_taxids"], info["n_taxonomy"]) == (4, 7, 7, 12)
        assert database.taxids_of([]).data.tolist() == [] and database.taxa_of([3]) == [()]


def test_a_database_without_taxa_stays_what_it_is() -> None:
    assert verified("plain.h5") == NONE
    with Database.open("plain.h5") as database:
        assert not database.has_taxa and not len(database.taxonomy) and "n_taxids" not in database.info()


def test_what_is_odd_is_said() -> None:
    done = run("db", "build", "in.fasta", "-o", "a.h5", "--taxids", "header", "--taxonomy", "taxonomy", "-q")
    assert done.returncode == 0
    assert [line.partition("warning: ")[2] for line in done.stderr.splitlines()] == [
        "taxids: 1 of 8 records have no taxid in their header",
        "taxonomy: 2 of 7 taxids are not in taxonomy: 4242, 12345",
    ]


TWO = "P00001 9606\nsp|P00002|A_MOUSE\t10090\n\nP00006 9598\nP00005 83333\nP00005 562\nQ99999 1\nP00004 0\n"
ROWS = {"P00001.2": 9606, "P00002.1": 10090, "P00006.2": 9598, "P00005.1": 83333, "P00005.2": 562, "Q99999.1": 1}
FOUR = "accession\taccession.version\ttaxid\tgi\n" + "".join(f"{a[:6]}\t{a}\t{t}\t0\n" for a, t in ROWS.items())
LONG = "Q00000 1\n" * (1 << 19)  # more than is read at once


@pytest.mark.parametrize(
    "text", [TWO, FOUR, LONG + TWO, TWO.replace("P00006 ", "P00006.2 "), TWO.replace("P00001 ", "P00001.9 ")]
)
def test_taxids_of_a_file_of_accessions(text: str) -> None:
    Path("taxids.gz").write_bytes(gzip.compress(text.encode()))
    with Database.build("in.fasta", "a.h5", taxids="taxids.gz") as database:
        assert taxids(database) == [[9606], [10090], [], [], [562, 83333], [9598], [], []]
        assert not len(database.taxonomy) and database.taxonomy.descendants([9606]).tolist() == [9606]


@pytest.mark.parametrize("source", ["-", "/dev/stdin"])
def test_taxids_from_a_pipe_are_read_whole(source: str) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        assert cat.stdin
        cat.stdin.write(TWO.encode())
        cat.stdin.close()
        done = run("db", "build", "in.fasta", "-o", "a.h5", "--taxids", source, "-q", stdin=cat.stdout)
    assert done.returncode == 0, done.stderr
    assert verified("a.h5") == [[9606], [10090], [], [], [562, 83333], [9598], [], []]


def test_taxids_of_headers() -> None:
    headers = {
        b"sp|P1|X OS=Homo sapiens OX=9606 GN=A": [9606],
        b"UniRef50_X n=2 Tax=root TaxID=1 RepID=Y": [1],
        b"a OX=5\x01b OX=4 c TaxID=5": [4, 5],
        b"a OX=0 BOX=7 OX=9999999999 OX=2147483648 OX=12a OX=-3": [],
        b"a\tOX=8": [8],
        b"OX=9": [9],
        b"7TaxID=3 OX=2147483647": [2147483647],
    }
    build_database(fasta("headers", *headers), "a.h5", taxids="header")
    assert verified("a.h5") == [*headers.values()]


def test_volumes_and_joined_databases_keep_their_taxa() -> None:
    build_database("in.fasta", "v.json", volume_size=1, **WITH_TAXA)
    assert verified("v.json") == TAXIDS
    with Database.open("v.json") as database, Database.open("db.h5") as whole:
        assert database.info()["n_with_taxid"] == 7
        assert database.taxonomy.taxon_names.tobytes() == whole.taxonomy.taxon_names.tobytes()
    with pytest.warns(SwsearchWarning, match=r"none were given for 8 new records; use db append --taxids header"):
        append_database("db.h5", "in.fasta", on_duplicate="keep")
    assert verified("db.h5") == TAXIDS + NONE
    with Database.open("db.h5") as database:
        assert database.taxonomy.descendants([9606]).tolist() == [9606, 63221]
    with Database.open(["plain.h5", "v.json"]) as database:
        assert taxids(database) == NONE + TAXIDS
        found = database.taxids_of([15, 0, 8, 8])
        assert found.offsets.tolist() == [0, 1, 1, 2, 3] and found.data.tolist() == [4242, 9606, 9606]


@pytest.mark.parametrize("rule", ["keep", "skip"])
@pytest.mark.parametrize("with_tree", [False, True])
def test_records_that_are_appended_have_their_taxa(rule: OnDuplicate, with_tree: bool) -> None:
    more = fasta("more", b"new1 OX=9606", b"P00005", b"new2 OX=562", b"new3 OX=9443", b"new4 OX=1423")
    options = WITH_TAXA if with_tree else {"taxids": "header"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        append_database("db.h5", more, on_duplicate=rule, **options)
    lost = "taxonomy: 1 of 4 taxids are not in the database's: 1423; give --taxonomy"
    said = ["taxids: 1 of 5 records have no taxid in their header"] * (rule == "keep") + [lost] * (not with_tree)
    assert [str(each.message) for each in caught] == said
    new = [[9606], *([[]] if rule != "skip" else []), [562], [9443], [1423]]
    assert verified("db.h5") == [*TAXIDS, *new]
    with Database.open("db.h5") as database:
        last = database.taxa_of([len(database) - 3, len(database) - 1])
        assert [taxon.scientific for (taxon,) in last] == ["Escherichia coli", "Bacillus subtilis" * with_tree]
        found = database.subjects_of(database.taxonomy.descendants([9443])).tolist()
        assert [database.identifier(subject) for subject in found[3:]] == ["new1", "new3"]


@pytest.mark.exhaustive
def test_a_tar_file_does_as_well_as_a_folder() -> None:
    with tarfile.open("dump.tar.gz", "w:gz") as tar:
        tar.add("taxonomy")
    build_database("in.fasta", "a.h5", taxids="header", taxonomy="dump.tar.gz")
    with Database.open("a.h5") as database, Database.open("db.h5") as other:
        assert database.identity() == other.identity()
    Path("cut.tar.gz").write_bytes(Path("dump.tar.gz").read_bytes()[:-40])
    refuses_to_build("taxonomy: cut.tar.gz: ", taxids="header", taxonomy="cut.tar.gz")


HOSTILE = {
    "garbage": ("nodes.dmp", "no taxonomy\n", "line 1: got 'no taxonomy', expected taxid, parent and rank"),
    "words": ("nodes.dmp", dump([("one", 1, "root")]), "line 1: got 'one', expected a taxid"),
    "huge": ("nodes.dmp", dump([(1, 1, "r"), (2**31, 1, "s")]), "line 2: got '2147483648', expected a taxid"),
    "very huge": ("nodes.dmp", dump([("9" * 5000, 1, "r")]), "expected a taxid, a number from 1 to 2,147,483,647"),
    "zero": ("nodes.dmp", dump([(0, 0, "r")]), "line 1: got '0', expected a taxid"),
    "empty": ("nodes.dmp", "\n \n", "nodes.dmp is empty"),
    "twice": ("nodes.dmp", dump([(1, 1, "r"), (1, 1, "r")]), "taxid 1 has two lines"),
    "no parent": ("nodes.dmp", dump([(1, 1, "r"), (5, 7, "s")]), "taxid 5 has the parent 7, which has no line"),
    "circle": ("nodes.dmp", dump([(1, 1, "r"), (5, 7, "s"), (7, 6, "s"), (6, 5, "s")]), "has itself as an ancestor"),
    "bytes": ("nodes.dmp", "\0\xff" * 100, "expected taxid, parent and rank"),
    "names": ("names.dmp", "\n9606\n", "names.dmp, line 2: got '9606', expected taxid, name"),
    "merged": ("merged.dmp", "5\n", "merged.dmp, line 1: got '5', expected an old and a new taxid"),
    "merged circle": ("merged.dmp", dump([(5, 6), (6, 5)]), "was merged into itself"),
    "no accessions": ("accessions", "", "is empty; expected lines of accession and taxid"),
    "one column": ("accessions", "P00001\n", "got the first line 'P00001', expected lines of accession and taxid"),
    "columns": ("accessions", "P00001 9606\nP00002\nP00003 1 2\n", "line 2: got 'P00002', expected 2 columns"),
    "a name": ("accessions", "P00001 9606\n\nP00002 human\n", "line 3: got 'P00002 human', expected a taxid"),
    "late": ("accessions", LONG + "P00002 human\n", "line 524,289: got 'P00002 human', expected a taxid"),
    "negative": ("accessions", "P00001 -5\n", "line 1: got 'P00001 -5', expected a taxid"),
    "large": ("accessions", f"P00001 {'9' * 26}\n", "expected a taxid, a number up to 2,147,483,647"),
    "a long line": ("accessions", "x" * (1 << 23), "line 1: is too long; expected lines of accession and taxid"),
}


@pytest.mark.parametrize("name", sample(HOSTILE, lambda name: name in ("circle", "columns")))
def test_hostile_dumps_and_lists_are_refused(name: str) -> None:
    file, text, problem = HOSTILE[name]
    Path("taxonomy", file).write_text(text, encoding="latin-1")
    refuses_to_build(problem, **(WITH_TAXA if file.endswith("dmp") else {"taxids": "taxonomy/accessions"}))


def test_what_is_missing_is_said_before_anything_is_read() -> None:
    before = sorted(Path().iterdir()), Path("plain.h5").read_bytes()
    for command, problem in {
        "build none.fasta -o a.h5 --taxids header --taxonomy .": "nodes.dmp not found",
        "build none.fasta -o a.h5 --taxids header --taxonomy none": "No such file",
        "build none.fasta -o a.h5 --taxids header --taxonomy in.fasta": "is not a tar file",
        "build none.fasta -o a.h5 --taxonomy taxonomy": "taxonomy: got no taxids, expected both",
        "build in.fasta -o a.h5 --taxids none": "no such file",
        "append plain.h5 in.fasta --taxids header": "has no taxids, so none can be appended; build the new records",
        "append plain.h5 in.fasta --taxids none.tsv": "no such file",
        "append plain.h5 in.fasta --taxonomy taxonomy": "taxonomy: got no taxids, expected both",
    }.items():
        fails(run("db", *command.split()), 1, problem)
    assert (sorted(Path().iterdir()), Path("plain.h5").read_bytes()) == before


DAMAGE = {
    "taxids": (lambda values: values * 0, "taxids do not ascend within a subject"),
    "taxid_offsets": (put(3, 100), "taxid offsets do not fit the taxids"),
    "taxa": (put(3, 1), "taxa do not ascend"),
    "taxon_parents": (put(3, 77), "stand below"),
    "taxon_parents ": (put(0, 131567), "a taxon stands above itself"),
    "taxon_names": (put(slice(0, 8), 10), "names"),
    "merged_taxids": (put(0, 2**31 - 1), "merged taxids do not ascend"),
    "merged_into": (put(0, 5), "were merged into"),
}


@pytest.mark.parametrize("name", sample(DAMAGE, lambda name: name == "taxids"))
def test_damaged_taxa(name: str) -> None:
    change, problem = DAMAGE[name]
    path = wrong(Path("db.h5"), Path("a.h5"), name.strip(), change)
    with pytest.raises(DatabaseDamageError, match=problem):
        verify_database(path)
    with pytest.raises(DatabaseDamageError, match=problem), Database.open(path) as database:
        database.taxa_of(range(database.n_subjects))


def test_taxonomies_of_two_times_make_one_without_circles() -> None:
    for time, above in {"old": {1: 1, 2: 3, 3: 1, 9: 2}, "new": {1: 1, 2: 1, 3: 2}}.items():
        Path("taxonomy/nodes.dmp").write_text(dump([(*row, "rank") for row in above.items()]))
        names = [(taxid, f"{time} {taxid}", "", "scientific name") for taxid in above]
        Path("taxonomy/names.dmp").write_text(dump(names))
        build_database(fasta(time, *(b"OX=%d" % taxid for taxid in above)), f"{time}.h5", **WITH_TAXA)
    with Database.open(["old.h5", "new.h5"]) as database:
        tree = database.taxonomy
        assert tree.taxa.tolist() == [1, 2, 3, 9] and tree.taxon_parents.tolist() == [1, 1, 2, 2]
        assert [tree.taxon(taxid).scientific for taxid in (2, 9)] == ["new 2", "old 9"]
