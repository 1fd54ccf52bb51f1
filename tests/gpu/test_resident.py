"""A database that stays with a GPU, asked by several threads at a time: the bytes of the CPU, whoever is stopped."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import swsearch
from support.small_jobs import CHUNK, Small
from swsearch.alphabet import PROTEIN
from swsearch.backends import resident
from swsearch.backends.resident import ResidentBackend
from swsearch.engines.gpu.memory import MIB
from swsearch.inputs import read_queries
from swsearch.pipeline.options import make_search_options
from swsearch.pipeline.prefetch import SearchCancelled
from swsearch.pipeline.search_results import SearchResults

pytestmark = pytest.mark.gpu

ASKED = [
    {},
    {"statistics": "published", "max_hits": 3},
    {"statistics": "none", "max_hits": 7, "sort": "score"},
    {"max_alignments": 3, "evalue": 1e3, "min_identity": 20.0},
    {"iterations": 2},
    {"mode": "global", "max_hits": 4},
    {"mode": "semiglobal", "statistics": "none", "max_hits": 20},
    {"subject_mask": "lower"},
    {"distribution": True},
]
"""Some are scored together, some cannot be."""

ROUNDS = 2


@pytest.fixture(scope="module")
def database(has_gpu, examples):
    with swsearch.Database.from_fasta([examples / "data" / "swissprot_sample.fasta.gz"]) as made:
        yield made


@pytest.fixture(scope="module")
def queries(database):
    return [(f"q{k}", database.sequence(k)) for k in range(0, database.n_subjects, database.n_subjects // 10)]


def text_of(results):
    stream = io.StringIO()
    swsearch.write(results, stream, "jsonl")
    return stream.getvalue()


def searching(place, queries, options, progress=None):
    """Begin a search, which runs as results are taken."""
    return SearchResults(queries, place.database, options, lambda _: place, progress=progress)


@pytest.fixture(scope="module")
def expected(database, queries):
    """Return the CPU's output for each of `ASKED`."""
    return [text_of(swsearch.search(queries, database, engine="cpu", **each)) for each in ASKED]


@pytest.mark.parametrize("n_together", [256, 3], ids=["in one turn", "in turns"])
@pytest.mark.parametrize("stays", [True, False], ids=["resident", "streamed"])
def test_searches_at_a_time_are_those_of_the_cpu(
    real_gpu, database, queries, expected, monkeypatch, stays, n_together
):
    monkeypatch.setattr(resident, "MAX_BATCH_QUERIES", n_together)
    Small(monkeypatch, CHUNK, stays)
    monkeypatch.setattr(real_gpu, "_memory_limit", 512 * MIB)  # what is said to be a gigabyte larger does not stay
    read = read_queries(queries, PROTEIN)
    with closing(ResidentBackend(database, real_gpu)) as place, ThreadPoolExecutor(len(ASKED)) as threads:
        assert place.plan.keep_loaded == stays
        for _ in range(ROUNDS):
            found = threads.map(lambda each: text_of(searching(place, read, make_search_options(**each))), ASKED)
            assert list(found) == expected


@pytest.mark.parametrize("asked", [[], ASKED], ids=["alone", "beside others"])
def test_a_search_that_is_stopped_leaves_the_others_their_results(real_gpu, database, queries, expected, asked):
    """It is stopped while it is scored, and the database is there for the next ones, whatever the kernels were at."""
    read = read_queries(queries, PROTEIN)
    started, is_stopped = threading.Event(), threading.Event()

    def wait_for_the_stop(cells):
        started.set()
        assert is_stopped.wait(60)

    with closing(ResidentBackend(database, real_gpu)) as place, ThreadPoolExecutor(len(ASKED) + 1) as threads:
        unwanted = searching(place, read * 20, make_search_options(), progress=wait_for_the_stop)
        taken = threads.submit(list, unwanted)
        found = [
            threads.submit(lambda each: text_of(searching(place, read, make_search_options(**each))), each)
            for each in asked
        ]
        assert started.wait(60)
        unwanted.stop()
        is_stopped.set()
        with pytest.raises(SearchCancelled):
            taken.result()
        assert [each.result() for each in found] == expected[: len(asked)]
        assert text_of(searching(place, read, make_search_options(**ASKED[0]))) == expected[0]
