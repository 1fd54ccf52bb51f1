"""Databases that know the taxa of their subjects: built, joined, cut, appended to, verified; and hostile dumps."""

from __future__ import annotations

import gzip
import tarfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.db_helpers import put, wrong
from support.samples import sample
from support.taxa import SEQUENCE, SUBJECTS, dump, write_subjects, write_taxonomy
from swsearch.db import Database, append_database, build_database, split_database, verify_database
from swsearch.db.format import read_user_block
from swsearch.db.taxids import header_taxids
from swsearch.db.taxonomy import Taxonomy, TaxonomyDamageError, packed_taxids, unpacked_taxids
from swsearch.errors import DatabaseDamageError, InputError, SwsearchError, SwsearchWarning
from swsearch.options.words import OnDuplicate

TAXIDS = [[taxid] if taxid else [] for _, taxid in SUBJECTS]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the taxonomy, sequences, and a database of both."""
    folder = tmp_path_factory.mktemp("taxa")
    write_taxonomy(folder / "taxonomy")
    write_subjects(folder / "in.fasta")
    with pytest.warns(SwsearchWarning):
        build_database(folder / "in.fasta", folder / "db.h5", taxids="header", taxonomy=folder / "taxonomy")
    return folder


def taxids(database: Database) -> list[list[int]]:
    found = database.taxids_of(range(database.n_subjects))
    return [found.taxids[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


def test_what_a_database_knows_of_its_taxa(places: Path) -> None:
    with Database.open(places / "db.h5") as database:
        assert taxids(database) == TAXIDS
        tree = database.taxonomy
        assert tree.taxa.tolist() == [1, 2, 562, 2759, 9443, 9598, 9606, 10090, 40674, 63221, 83333, 131567]
        assert tree.below([9606]).tolist() == [9606, 63221]
        assert tree.below([40674, 4242]).tolist() == [4242, 9443, 9598, 9606, 10090, 40674, 63221]
        assert tree.name(9606) == ("species", "Homo sapiens", "human", "")
        assert tree.name(9598).common == "chimpanzee" and tree.name(4242).scientific == ""
        assert (tree.blast_name(63221), tree.blast_name(10090), tree.blast_name(83333)) == (
            "primates", "mammals", "eubacteria",
        )  # fmt: skip
        assert (tree.kingdom(9606), tree.kingdom(562), tree.kingdom(1)) == ("Eukaryota", "Bacteria", "")
        states = {
            666: "merged",
            9605777: "merged",
            1423: "elsewhere",
            777: "elsewhere",
            12345: "deleted",
            4242: "unknown",
        }
        assert {taxid: tree.state(taxid) for taxid in states} == states
        assert tree.current(666) == 9606 and tree.current(9606) == 9606
        assert database.subjects_of([9606, 4242, 5]).tolist() == [0, 7]
        info = database.info()
        assert (info["format_version"], info["n_with_taxid"], info["n_taxids"], info["n_taxonomy"]) == (3, 7, 7, 12)
    verify_database(places / "db.h5")


def test_a_database_without_taxa_stays_what_it_is(places: Path, tmp_path: Path) -> None:
    build_database(places / "in.fasta", tmp_path / "plain.h5")
    block = read_user_block(tmp_path / "plain.h5")
    assert block is not None and block.version == 1
    with Database.open(tmp_path / "plain.h5") as database:
        assert not database.has_taxa and taxids(database) == [[]] * len(SUBJECTS) and not len(database.taxonomy)
        assert "n_taxids" not in database.info()


@pytest.mark.exhaustive
def test_what_is_odd_is_said(places: Path, tmp_path: Path) -> None:
    with pytest.warns(SwsearchWarning) as said:
        build_database(places / "in.fasta", tmp_path / "a.h5", taxids="header", taxonomy=places / "taxonomy")
    texts = [str(each.message) for each in said]
    assert texts[0] == "taxids: 1 of 8 records have no taxid in their header"
    assert "1 of 7 taxids are deleted from" in texts[1] and texts[1].endswith(": 12345")
    assert "1 of 7 taxids are not in" in texts[2] and texts[2].endswith(": 4242")


TWO = "P00001 9606\nsp|P00002|A_MOUSE\t10090\n\nP00006 9598\nP00005 83333\nP00005 562\nQ99999 1\nP00004 0\n"
FOUR = (
    "accession\taccession.version\ttaxid\tgi\n"
    "P00001\tP00001.2\t9606\t0\nP00002\tP00002.1\t10090\t0\nP00006\tP00006.2\t9598\t0\nP00005\tP00005.1\t83333\t5\n"
    "P00005\tP00005.2\t562\t5\nQ99999\tQ99999.1\t1\t0\n"
)


@pytest.mark.parametrize(
    "text", [TWO, FOUR, TWO.replace("P00006 ", "P00006.2 "), TWO.replace("P00001 ", "P00001.9 ")]
)
@pytest.mark.parametrize("piece", sample([1 << 22, 16], lambda piece: piece == 16))
def test_taxids_of_a_file_of_accessions(
    places: Path, tmp_path: Path, text: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swsearch.db.taxids.FILE_BYTES", max(piece, 64))
    path = tmp_path / "taxids.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SwsearchWarning)
        database = Database.build(places / "in.fasta", tmp_path / "a.h5", taxids=path)
    with database:
        assert taxids(database) == [[9606], [10090], [], [], [562, 83333], [9598], [], []]
        assert not len(database.taxonomy) and database.taxonomy.below([9606]).tolist() == [9606]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty; expected lines of accession and taxid"),
        ("P00001\n", "got the first line 'P00001', expected lines of accession and taxid"),
        ("P00001 9606\nP00002\nP00003 1 2\n", "line 2: got 'P00002', expected 2 columns"),
        ("P00001 9606\n\nP00002 human\n", "line 3: got 'P00002 human', expected a taxid, a number"),
        ("P00001 -5\n", "line 1: got 'P00001 -5', expected a taxid"),
        ("P00001 99999999999999999999999999\n", "expected a taxid, a number up to 2,147,483,647"),
        ("x" * (1 << 23), "line 1: is too long; expected lines of accession and taxid"),
    ],
)
@pytest.mark.exhaustive
def test_files_that_say_no_taxids(places: Path, tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "taxids"
    path.write_text(text)
    with pytest.raises(InputError, match="taxids") as error:
        build_database(places / "in.fasta", tmp_path / "a.h5", taxids=path)
    assert problem in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["taxids"]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (b"sp|P1|X OS=Homo sapiens OX=9606 GN=A", [9606]),
        (b"UniRef50_X n=2 Tax=root TaxID=1 RepID=Y", [1]),
        (b"a OX=5\x01b OX=4 c", [4, 5]),
        (b"a OX=0 BOX=7 OX=9999999999 OX=12a OX=-3", []),
        (b"a\tOX=8", [8]),
        (b"OX=9", [9]),
    ],
)
def test_taxids_of_headers(header: bytes, found: list[int]) -> None:
    assert header_taxids(header) == found


def test_volumes_split_append_and_joined_databases_keep_their_taxa(places: Path, tmp_path: Path) -> None:
    options = {"taxids": "header", "taxonomy": places / "taxonomy"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SwsearchWarning)
        build_database(places / "in.fasta", tmp_path / "v.json", volume_size=1, **options)
        split_database(places / "db.h5", tmp_path / "s.json", volumes=3)
        build_database(places / "in.fasta", tmp_path / "plain.h5")
    with Database.open(places / "db.h5") as whole:
        tree = whole.taxonomy
    for name in ("v.json", "s.json"):
        verify_database(tmp_path / name)
        with Database.open(tmp_path / name) as database:
            assert taxids(database) == TAXIDS and database.taxonomy.names == tree.names
            assert database.info()["n_with_taxid"] == 7
    (tmp_path / "a.h5").write_bytes((places / "db.h5").read_bytes())
    with pytest.warns(SwsearchWarning, match=r"none were given for 8 new records; use db append --taxids header"):
        append_database(tmp_path / "a.h5", places / "in.fasta", on_duplicate="keep")
    verify_database(tmp_path / "a.h5")
    with Database.open(tmp_path / "a.h5") as database:
        assert taxids(database) == TAXIDS + [[]] * len(SUBJECTS)
        assert database.taxonomy.below([9606]).tolist() == [9606, 63221]
    with Database.open([tmp_path / "plain.h5", tmp_path / "v.json"]) as database:
        assert taxids(database) == [[]] * len(SUBJECTS) + TAXIDS
        order = np.array([15, 0, 8, 8])
        found = database.taxids_of(order)
        assert found.offsets.tolist() == [0, 1, 1, 2, 3] and found.taxids.tolist() == [4242, 9606, 9606]


@pytest.mark.parametrize("rule", ["keep", "replace", "skip"])
@pytest.mark.parametrize("with_tree", [False, True])
def test_records_that_are_appended_have_their_taxa(
    places: Path, tmp_path: Path, rule: OnDuplicate, with_tree: bool
) -> None:
    (tmp_path / "a.h5").write_bytes((places / "db.h5").read_bytes())
    more = [("new1", 9606), ("P00005", 0), ("new2", 562), ("new3", 9443), ("new4", 1423)]
    lines = (f">{name}{f' OX={taxid}' if taxid else ''}\n{SEQUENCE}\n" for name, taxid in more)
    (tmp_path / "more.fasta").write_text("".join(lines))
    tree: dict[str, Any] = {"taxonomy": places / "taxonomy"} if with_tree else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SwsearchWarning)
        append_database(tmp_path / "a.h5", tmp_path / "more.fasta", taxids="header", on_duplicate=rule, **tree)
    said = ["taxids: 1 of 5 records have no taxid in their header"]
    if not with_tree:
        said.append("taxonomy: 1 of 4 taxids are without a name in the database's: 1423; give --taxonomy")
    assert [str(each.message) for each in caught] == said
    verify_database(tmp_path / "a.h5")
    with Database.open(tmp_path / "a.h5") as database:
        old = TAXIDS if rule != "replace" else [*TAXIDS[:4], *TAXIDS[5:]]
        new = [[9606], *([[]] if rule != "skip" else []), [562], [9443], [1423]]
        assert taxids(database) == [*old, *new]
        last = database.taxa_of([len(database) - 3, len(database) - 1])
        assert [taxon.scientific for (taxon,) in last] == ["Escherichia coli", "Bacillus subtilis" * with_tree]
        found = database.subjects_of(database.taxonomy.below([9443])).tolist()
        assert [database.identifier(subject) for subject in found[-2:]] == ["new1", "new3"]
        assert len(found) == 5


def test_taxids_for_a_database_without_any_are_refused(places: Path, tmp_path: Path) -> None:
    build_database(places / "in.fasta", tmp_path / "plain.h5")
    before = (tmp_path / "plain.h5").read_bytes()
    refused: list[tuple[dict[str, Any], str]] = [
        ({"taxids": "header"}, "has no taxids, so none can be appended; build the new records"),
        ({"taxids": tmp_path / "none.tsv"}, "no such file"),
        ({"taxonomy": places / "taxonomy"}, "taxonomy: got no taxids, expected both"),
    ]
    for options, problem in refused:
        with pytest.raises(SwsearchError, match=problem):
            append_database(tmp_path / "plain.h5", places / "in.fasta", on_duplicate="keep", **options)
    assert (tmp_path / "plain.h5").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain.h5"]


@pytest.mark.exhaustive
def test_a_volume_is_no_larger_than_was_asked_for(places: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.fasta"
    path.write_text("".join(f">r{n} OX={9606 + n % 5}\n{'MKVLAAGIVG' * (n % 7)}\n" for n in range(1, 3000)))
    size = 130_000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SwsearchWarning)
        build_database(path, tmp_path / "v.json", volume_size=size, taxids="header", taxonomy=places / "taxonomy")
    sizes = [each.stat().st_size for each in tmp_path.glob("v.*.h5")]
    assert len(sizes) > 1 and max(sizes) <= size
    verify_database(tmp_path / "v.json")


@pytest.mark.exhaustive
def test_a_tar_file_does_as_well_as_a_folder(places: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "taxdump.tar.gz", "w:gz") as tar:
        for path in sorted((places / "taxonomy").iterdir()):
            tar.add(path, arcname=path.name)
    with pytest.warns(SwsearchWarning):
        database = Database.build(
            places / "in.fasta", tmp_path / "a.h5", taxids="header", taxonomy=tmp_path / "taxdump.tar.gz"
        )
    with database, Database.open(places / "db.h5") as other:
        assert database.identity() == other.identity()


HOSTILE = {
    "garbage": ("nodes.dmp", "no taxonomy\n", "line 1: got 'no taxonomy', expected taxid, parent and rank"),
    "words": ("nodes.dmp", dump([("one", 1, "root")]), "line 1: got 'one', expected a taxid"),
    "huge": ("nodes.dmp", dump([(1, 1, "r"), (2**31, 1, "s")]), "line 2: got '2147483648', expected a taxid"),
    "very huge": ("nodes.dmp", dump([("9" * 5000, 1, "r")]), "expected a taxid, a number from 1 to 2,147,483,647"),
    "zero": ("nodes.dmp", dump([(0, 0, "r")]), "line 1: got '0', expected a taxid"),
    "empty": ("nodes.dmp", "", "nodes.dmp is empty"),
    "twice": ("nodes.dmp", dump([(1, 1, "r"), (1, 1, "r")]), "taxid 1 has two lines"),
    "no parent": ("nodes.dmp", dump([(1, 1, "r"), (5, 7, "s")]), "taxid 5 has the parent 7, which has no line"),
    "circle": ("nodes.dmp", dump([(1, 1, "r"), (5, 7, "s"), (7, 6, "s"), (6, 5, "s")]), "has itself as an ancestor"),
    "bytes": ("nodes.dmp", "\0\xff" * 100, "expected taxid, parent and rank"),
    "names": ("names.dmp", "9606\n", "names.dmp, line 1: expected taxid, name"),
    "names' taxid": ("names.dmp", dump([("x", "a", "", "scientific name")]), "line 1: got 'x', expected a taxid"),
    "merged": ("merged.dmp", "5\n", "merged.dmp, line 1: expected an old and a new taxid"),
    "merged circle": ("merged.dmp", dump([(5, 6), (6, 5)]), "was merged into itself"),
    "deleted": ("delnodes.dmp", "x\t|\n", "delnodes.dmp, line 1: got 'x', expected a taxid"),
}


@pytest.mark.parametrize("name", sample(HOSTILE, lambda name: name == "circle"))
def test_hostile_dumps(places: Path, tmp_path: Path, name: str) -> None:
    file, text, problem = HOSTILE[name]
    folder = write_taxonomy(tmp_path / "taxonomy")
    (folder / file).write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="taxonomy: ") as error:
        build_database(places / "in.fasta", tmp_path / "a.h5", taxids="header", taxonomy=folder)
    assert problem in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["taxonomy"]


def test_what_is_no_taxonomy_is_said_before_anything_is_read(places: Path, tmp_path: Path) -> None:
    for value, problem in (
        (tmp_path, "nodes.dmp not found"),
        (tmp_path / "none", "No such file"),
        (__file__, "is not a tar file"),
    ):
        with pytest.raises(InputError, match=problem):
            build_database("no such file", tmp_path / "a.h5", taxids="header", taxonomy=value)
    with pytest.raises(InputError, match="taxonomy: got no taxids, expected both"):
        build_database("no such file", tmp_path / "a.h5", taxonomy=places / "taxonomy")
    with pytest.raises(InputError, match="no such file"):
        build_database(places / "in.fasta", tmp_path / "a.h5", taxids=tmp_path / "none")


DAMAGE = {
    "taxids": (lambda values: values * 0, "taxids do not ascend within a subject"),
    "taxid_offsets": (put(3, 100), "taxid offsets do not fit the taxids"),
    "taxa": (put(3, 1), "taxa do not ascend"),
    "taxon_parents": (put(3, 77), "stand below"),
    "taxon_names": (put(slice(0, 8), 10), "names"),
    "merged_taxids": (put(0, 2**31 - 1), "merged taxids do not ascend"),
    "merged_into": (put(0, 5), "were merged into"),
    "known_taxids": (put(4, 0), "known taxids"),
}


@pytest.mark.parametrize("name", sample(DAMAGE, lambda name: name == "taxids"))
def test_damaged_taxa(places: Path, tmp_path: Path, name: str) -> None:
    change, problem = DAMAGE[name]
    path = wrong(places / "db.h5", tmp_path / "a.h5", name, change)
    with pytest.raises(DatabaseDamageError, match=problem):
        verify_database(path)
    with pytest.raises(DatabaseDamageError, match=problem), Database.open(path) as database:
        taxids(database)
        _ = database.taxonomy


@given(st.sets(st.integers(1, 2**31 - 1), max_size=40), st.sets(st.integers(1, 2**31 - 1), max_size=10))
def test_taxids_are_packed(known: set[int], deleted: set[int]) -> None:
    packed = packed_taxids(np.array(sorted(known), dtype=np.int64), np.array(sorted(deleted), dtype=np.int64))
    assert unpacked_taxids(packed).tolist() == sorted(
        {2 * each for each in known} | {2 * d + 1 for d in deleted - known}
    )


def test_taxonomies_of_two_times_make_one_without_circles() -> None:
    def tree(above: dict[int, int]) -> Taxonomy:
        taxa = np.array(sorted(above), dtype=np.int32)
        parents = np.array([above[each] for each in sorted(above)], dtype=np.int32)
        names = "\n".join(f"rank\ttaxon {each} of {len(above)}\t\t" for each in sorted(above)).encode()
        none = np.empty(0, dtype=np.int32)
        return Taxonomy(taxa, parents, names, none, none)

    joined = Taxonomy.joined([tree({1: 1, 2: 3, 3: 1, 9: 2}), tree({1: 1, 2: 1, 3: 2})])
    joined.check()
    assert joined.taxa.tolist() == [1, 2, 3, 9] and joined.parents.tolist() == [1, 1, 2, 2]
    assert [joined.name(each).scientific for each in (2, 9)] == ["taxon 2 of 3", "taxon 9 of 4"]
    with pytest.raises(TaxonomyDamageError, match="stands above itself"):
        tree({1: 1, 2: 3, 3: 2}).check()
