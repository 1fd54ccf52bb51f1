"""Results outlive the database that they were found in, whichever way it ends."""

import copy
import gc
import io
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.errors import DatabaseError
from swsearch.report import OUTPUT_FORMATS


def _records():
    pick = random.Random(11)
    letters = PROTEIN.letters[:20]
    query = "".join(pick.choices(letters, k=80))
    others = ["".join(pick.choices(letters, k=60)) for _ in range(70)]
    return query, [(f"s{n} number {n}", query[n : n + 30 + n % 40].lower() + other) for n, other in enumerate(others)]


QUERY, RECORDS = _records()
OPTIONS = {"evalue": 1e3, "engine": "cpu", "max_alignments": 2, "subject_mask": "lower"}
OPEN_FILES = Path("/proc/self/fd")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "subjects.h5"
    fasta = path.with_suffix(".fa")
    fasta.write_text("".join(f">{name}\n{letters}\n" for name, letters in RECORDS))
    swsearch.Database.build(fasta, path, mask="lower").close()
    return path


def everything(results):
    """All that a caller can ask of results, as values to compare."""
    found = []
    for result in results:
        found.append(result.to_columns())
        found.append(result.to_pandas().to_csv())
        found.append(result.to_arrow().to_pylist())
        for hit in result:
            found.append((hit.query_range, hit.subject_range, hit.cigar, hit.identities, hit.positives, hit.gaps))
            found.append((hit, str(hit.alignment), [hsp.pair.rows() for hsp in hit.hsps]))
    return found


@pytest.fixture(scope="module")
def expected(path):
    with swsearch.Database.open(path) as database:
        return everything(list(swsearch.search(QUERY, database, **OPTIONS)))


def closed(path):
    with swsearch.Database.open(path) as database:
        return list(swsearch.search(QUERY, database, **OPTIONS))


def deleted(path):
    other = path.with_name("deleted.h5")
    other.write_bytes(path.read_bytes())
    results = closed(other)
    other.unlink()
    return results


def replaced(path):
    other = path.with_name("replaced.h5")
    other.write_bytes(path.read_bytes())
    results = closed(other)
    swsearch.Database.build(path.with_suffix(".fa"), other, mask="none").close()
    return results


def collected(path):
    database = swsearch.Database.open(path)
    results = list(swsearch.search(QUERY, database, **OPTIONS))
    del database
    gc.collect()
    return results


def of_a_search_that_is_closed(path):
    with swsearch.search(QUERY, path, **OPTIONS) as search:
        return list(search)


def half_consumed(path):
    with swsearch.Database.open(path) as database:
        search = swsearch.search([QUERY, QUERY[::-1]], database, **OPTIONS)
        first = next(search)
    search.close()
    return [first]


@pytest.mark.parametrize(
    "found",
    [closed, deleted, replaced, collected, of_a_search_that_is_closed, half_consumed],
    ids=lambda f: f.__name__,
)
def test_results_outlive_their_database(found, path, expected):
    assert everything(found(path)) == expected


@pytest.mark.parametrize("kind", ["records", "fasta", "temporary file"])
def test_results_outlive_a_database_without_a_file_of_its_own(kind, path, expected, monkeypatch):
    if kind == "records":
        database = swsearch.Database.from_records(RECORDS)
    else:
        # a database larger than the memory allowed goes to a file that has no name any more
        monkeypatch.setattr("swsearch.db.building.total_bytes", lambda _: 1 << 60 if kind == "temporary file" else 1)
        database = swsearch.Database.from_fasta(path.with_suffix(".fa"))
    with database:
        results = list(swsearch.search(QUERY, database, **OPTIONS))
    del database
    assert everything(results) == expected


@pytest.mark.parametrize("kind", OUTPUT_FORMATS, ids=lambda kind: kind.key)
def test_results_of_a_closed_database_are_written(kind, path):
    def written(results):
        stream = io.BytesIO() if kind.writer.binary else io.StringIO()
        swsearch.write(results, stream, kind.key)
        return stream.getvalue()

    results = closed(path)
    with swsearch.Database.open(path) as database:
        open_ = list(swsearch.search(QUERY, database, **OPTIONS))
        if kind.key == "html":
            written(open_)  # says when and how it was made
        else:
            assert written(results) == written(open_)
    assert len(written(results)) > (100 if kind.key == "toml" else 1000)


def test_results_of_a_closed_database_are_drawn(path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with swsearch.Database.open(path) as database:
        (result,) = swsearch.search(QUERY, database, distribution=True, **OPTIONS)
    for axes in (result.plot_scores(), result.plot_coverage(), result[0].plot_dots()):
        assert axes.has_data()
    pyplot.close("all")


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))], ids=["copy", "pickle"]
)
def test_results_of_a_closed_database_are_copied(copied, path, expected):
    assert everything(copied(closed(path))) == expected
    hit = copied(closed(path)[0][0])
    assert (hit, hit.is_aligned) == (closed(path)[0][0], True)


def test_threads_that_use_one_result_see_the_same(path, expected):
    (result,) = closed(path)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: everything([result]), range(4)))
        pairs = list(threads.map(lambda _: [id(hit.pair) for hit in result], range(4)))
    assert found == [expected] * 4
    assert pairs == [pairs[0]] * 4


def test_nothing_is_aligned_or_kept_open_for_hits_that_nobody_asks(path):
    def is_open():
        return any(link.exists() and link.samefile(path) for link in OPEN_FILES.iterdir())

    if not OPEN_FILES.is_dir():
        pytest.skip("open files cannot be listed here")
    gc.collect()
    results = closed(path)
    assert not any(hit.is_aligned for result in results for hit in result)
    assert is_open()  # the hits may still be aligned
    everything(results)
    assert not is_open()  # all are
    results = closed(path)
    del results
    assert not is_open()


def test_a_search_that_goes_on_after_its_database_was_closed_says_so(path):
    with swsearch.Database.open(path) as database:
        search = swsearch.search(QUERY, database, engine="cpu")
    with pytest.raises(DatabaseError, match=r"subjects\.h5: this Database was closed; open"):
        next(search)
    with pytest.raises(DatabaseError, match="was closed"):
        swsearch.search(QUERY, database, engine="cpu")
