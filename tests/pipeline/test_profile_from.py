"""Iterations that search another database than the last one does."""

from __future__ import annotations

import random
import threading

import pytest

import swsearch
from support.command_line import fails, run
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError
from swsearch.pipeline.prefetch import SearchCancelled

LETTERS = PROTEIN.letters[:20]


def families(rng, rates):
    """Make two families, whose members differ by ever more, and unrelated sequences."""
    founders = ["".join(rng.choices(LETTERS, k=70)) for _ in range(2)]
    records = [
        (f"f{family}-{rate}", "".join(rng.choice(LETTERS) if rng.random() < rate else letter for letter in founder))
        for family, founder in enumerate(founders)
        for rate in rates
    ]
    return records + [(f"r{k}", "".join(rng.choices(LETTERS, k=rng.randint(20, 90)))) for k in range(40)], founders


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """FASTA files: queries, one of them empty and one in lower case; a background; and what is searched."""
    folder, rng = tmp_path_factory.mktemp("background"), random.Random(7)
    background, founders = families(rng, [0.1, 0.2, 0.3, 0.35, 0.4])
    members = [
        (f"m{k}", "".join(rng.choice(LETTERS) if rng.random() < 0.6 else letter for letter in founders[k % 2]))
        for k in range(8)
    ]
    queries = [
        ("first", founders[0]), ("empty", ""), ("lower", founders[1][:40] + founders[1][40:].lower()),
        ("alone", "WCWCWHHHWCWCHHHW"),
    ]  # fmt: skip
    written = {"queries": queries, "background": background, "subjects": [*members, *background[-30:]]}
    for name, records in written.items():
        (folder / name).with_suffix(".fasta").write_text("".join(f">{a}\n{b}\n" for a, b in records))
    return [str(folder / f"{name}.fasta") for name in written]


def lines(results):
    return [
        (result.query_id, result.iteration, hit.subject_id, hit.score, hit.evalue, hit.cigar)
        for result in results
        for hit in result.hits
    ]


@pytest.mark.parametrize("options", [{}, {"inclusion_evalue": 0.1, "mode": "semiglobal"}, {"query_mask": "lower"}])
@pytest.mark.parametrize("iterations", [2, 4])
def test_the_last_iteration_searches_with_the_profile_of_the_others(files, iterations, options):
    queries, background, subjects = files
    chosen = {"preset": "context", **options, "engine": "cpu", "evalue": 10.0}
    found = list(swsearch.search(queries, subjects, iterations=iterations, profile_from=background, **chosen))
    first = list(swsearch.search(queries, background, iterations=iterations - 1, keep_profiles=True, **chosen))
    chosen.pop("query_mask", None)
    again = [
        next(swsearch.search(result.next_profile or ("empty", ""), subjects, **chosen))
        for result in first
        if "query_mask" not in options or result.query_id != "lower"
    ]
    kept = [result for result in found if "query_mask" not in options or result.query_id != "lower"]
    assert lines(kept) == lines(again)
    assert {result.query_id for result in found if len(result.hits)} >= {"first", "lower"}
    assert found[0].iteration == first[0].next_profile.iteration + 1 > 1


def test_filters_and_limits_are_those_of_the_report(files):
    queries, background, subjects = files
    whole, filtered = (
        list(swsearch.search(queries, subjects, engine="cpu", iterations=3, profile_from=background, **options))
        for options in ({}, {"exclude_ids": ["m0"], "max_hits": 2, "dbsize": 10**6, "sort": "score"})
    )
    assert "m0" in {hit.subject_id for hit in whole[0].hits}
    assert "m0" not in {hit.subject_id for hit in filtered[0].hits}
    assert (filtered[0].profile.scores == whole[0].profile.scores).all()


def test_a_stop_ends_the_other_database_too(files):
    queries, background, subjects = files
    results = swsearch.search(queries, subjects, engine="cpu", iterations=3, profile_from=background)
    stopped = threading.Event()

    def take(other):
        threading.Thread(target=lambda: (results.stop(), stopped.set())).start()
        assert stopped.wait(60)
        return list(other)

    results.take_profiles_by(take)
    with pytest.raises(SearchCancelled):
        next(results)


def test_command_with_a_checkpoint(files, tmp_path):
    queries, background, subjects = files
    words = ["search", queries, subjects, "--engine", "cpu", "--iterations", "3", "--profile-from", background]
    plain, kept, again = (
        run(*words, *more, "--outfmt", "7") for more in ([], *[["--checkpoint", tmp_path / "kept"]] * 2)
    )
    assert plain.returncode == kept.returncode == again.returncode == 0, (plain.stderr, kept.stderr, again.stderr)
    assert plain.stdout == kept.stdout == again.stdout
    assert f"profile_from {background}" in plain.stdout
    assert "4 queries are done" in again.stderr
    other = run(*words[:-1], subjects, "--checkpoint", tmp_path / "kept")
    fails(other, 1, "profiles belongs to another search")


def test_rows_of_an_alignment_are_of_the_subjects(files, tmp_path):
    queries, background, subjects = files
    done = run("msa", queries, subjects, "--engine", "cpu", "--profile-from", background, "-o", tmp_path / "a3m")
    assert done.returncode == 0, done.stderr
    names = [line[1:].split()[0] for line in (tmp_path / "a3m" / "first.a3m").read_text().splitlines()[::2]]
    assert names[0] == "first"
    assert names[1:]
    assert all(name.startswith("m") for name in names[1:])


def test_wrong_uses(files, tmp_path):
    queries, background, subjects = files
    words = ["search", queries, subjects, "--engine", "cpu", "--profile-from", background]
    fails(run(*words), 1, "--profile-from", "--iterations 2 or more")
    fails(run(*words[:-1], tmp_path / "no.h5", "--iterations", "2"), 1, "--profile-from", "no.h5", "no such file")
    fails(run(*words, "--iterations", "2", "--translate"), 1, "translate: cannot be combined")
    fails(run(*words, "--iterations", "2", "--query-loc", "1-9"), 1, "--query-loc")
    fails(
        run("search", queries, "http://localhost:9/x", "--iterations", "2", "--profile-from", background), 1, "server"
    )
    with pytest.raises(InputError, match="none for a Searcher"):
        swsearch.Searcher(subjects, iterations=2, profile_from=background)
    with pytest.raises(OptionError, match="profile_from: got 7"):
        swsearch.search(queries, subjects, iterations=2, profile_from=7)
