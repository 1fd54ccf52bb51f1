"""Searches whose queries are scored by the contexts of their residues."""

from __future__ import annotations

import json

import numpy as np
import pytest

import swsearch
from support.cases import flat_matrix
from support.command_line import fails, run
from swsearch.alphabet import PROTEIN
from swsearch.client.search_request import options_from_json, options_to_json
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import MODES
from swsearch.pipeline.options import SearchOptions
from swsearch.profiles.contexts import context_profile
from swsearch.scoring import Scoring

SUBJECTS = "examples/data/swissprot_sample.fasta.gz"
INSULIN = "FVNQHLCGSHLVEALYLVCGERGFFYTPKT"
KINASE = "MSSGTMKFNGYLRVRIGEAVGLQPTRWSLRHSLFKKGHQLLDPYLTVSVDQVRVGQTSTKQKTNKPTYNEEFCANVTDGG"


@pytest.fixture(scope="module")
def database():
    with swsearch.Database.from_fasta(SUBJECTS) as made:
        yield made


def lines(results):
    return [
        (result.query_id, hit.subject_id, hit.score, hit.evalue, hit.hsps[0].query_range[0], hit.cigar)
        for result in results
        for hit in result.hits
    ]


def profile_of(name, letters, scoring=None):
    return context_profile(name, "", PROTEIN.encode(letters), scoring or Scoring())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("matrix", [None, "BLOSUM62"])
def test_a_query_is_its_profile(database, mode, matrix):
    options = {"mode": mode, "engine": "cpu", "max_hits": 30}
    queries = [("a", INSULIN), ("b", KINASE)]
    found = list(swsearch.search(queries, database, preset="context", matrix=matrix, **options))
    scoring = Scoring(matrix or "PFASUM60")
    profiles = [profile_of(*query, scoring) for query in queries]
    assert lines(found) == lines(swsearch.search(profiles, database, scoring=scoring, **options))
    assert lines(found) != lines(swsearch.search(queries, database, matrix=matrix, **options))
    assert found[0].scoring == scoring
    assert found[0].iteration == 1


def test_every_interface_finds_the_same(database, tmp_path):
    (tmp_path / "q.fasta").write_text(f">a\n{INSULIN}\n")
    found = lines(swsearch.search(("a", INSULIN), database, preset="context", max_hits=5, engine="cpu"))
    with swsearch.Searcher(database, contexts=True, max_hits=5, engine="cpu") as searcher:
        assert lines(searcher.search(("a", INSULIN))) == found
    words = ["--preset", "context", "--max-hits", "5", "--outfmt", "6 qseqid sseqid score"]
    done = run("search", tmp_path / "q.fasta", SUBJECTS, *words, "--engine", "cpu")
    assert [tuple(line.split("\t")) for line in done.stdout.splitlines()] == [
        (query, subject, str(score)) for query, subject, score, *_ in found
    ]
    sent = json.loads(json.dumps(options_to_json(SearchOptions(preset="context"))))
    assert options_from_json(sent) == SearchOptions(preset="context") == SearchOptions(contexts=True)


def test_masked_residues_are_unknown(database):
    masked = INSULIN[:12] + INSULIN[12:18].lower() + INSULIN[18:]
    unknown = INSULIN[:12] + "X" * 6 + INSULIN[18:]
    options = {"preset": "context", "engine": "cpu", "max_hits": 20}
    assert lines(swsearch.search(("a", masked), database, query_mask="lower", **options)) == lines(
        swsearch.search(("a", unknown), database, **options)
    )


def test_part_of_a_query(database):
    options = {"preset": "context", "engine": "cpu", "max_hits": 20}
    part = list(swsearch.search(("a", "MKTW" + INSULIN), database, query_loc=(5, 34), **options))
    whole = lines(swsearch.search(("a", INSULIN), database, **options))
    assert [(*line[:4], line[4] - 4, line[5]) for line in lines(part)] == whole


def test_profiles_and_empty_queries_stay_as_they_are(database):
    generator = np.random.default_rng(1)
    codes = PROTEIN.encode(INSULIN)
    scores = generator.integers(-4, 6, (len(codes), 27)).astype(np.int8)
    own = swsearch.Profile("own", "", codes, scores, gap_open=11, gap_extend=1)
    found = list(swsearch.search([own, ("empty", "")], database, preset="context", engine="cpu"))
    assert lines(found) == lines(swsearch.search([own], database, scoring=Scoring("PFASUM60"), engine="cpu"))
    assert found[1].no_evalue_reason


def test_iterations_go_on_with_contexts(database):
    options = {"engine": "cpu", "iterations": 3, "max_hits": 50, "keep_profiles": True}
    plain, context = (
        next(swsearch.search(("a", INSULIN), database, **options, **more)) for more in ({"preset": "default"}, {})
    )
    assert context.iteration > 1
    assert context.profile.iteration == context.iteration - 1
    assert len(context.next_profile.alignment) > 1
    assert lines([context]) != lines([plain])


def test_wrong_uses(database, tmp_path):
    with pytest.raises(InputError, match="translate: cannot be combined with --preset context"):
        SearchOptions(preset="context", translate=True)
    with pytest.raises(OptionError, match=r"statistics: got 'published'.* --preset context"):
        SearchOptions(preset="context", statistics="published")
    with pytest.raises(InputError, match="task short and --preset context"):
        SearchOptions(preset="context", task="short")
    with pytest.raises(InputError, match="lambda"):
        swsearch.search("MKV", database, preset="context", matrix=flat_matrix(3, 1))
    with pytest.raises(OptionError, match="preset: got 'context'"):
        swsearch.score("MKV", "MKV", preset="context")
    fails(run("align", "MKVLA", "MKVLA", "--preset", "context"), 1, "--preset: got 'context'")
