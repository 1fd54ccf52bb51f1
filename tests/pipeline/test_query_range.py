"""A part of each query in place of the whole: it finds what the cut query finds, at its place in the whole."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError
from swsearch.pipeline.options import SearchOptions
from swsearch.profiles.query_alignment import QueryAlignment

FIRST, LAST = 31, 90


def random_protein(rng: np.random.Generator, length: int) -> str:
    return "".join(rng.choice(list("ARNDCQEGHILKMFPSTWYV"), length))


@pytest.fixture(scope="module")
def case() -> tuple[str, dict[str, str]]:
    """A query and subjects, some of them made of parts of it."""
    rng = np.random.default_rng(8)
    query = random_protein(rng, 140)
    subjects = {f"s{k}": random_protein(rng, 60) + query[10 * k : 10 * k + 50] for k in range(9)}
    return query, {**subjects, **{f"r{k}": random_protein(rng, 120) for k in range(30)}}


def found(query: str, subjects: dict[str, str], **asked: Any) -> swsearch.SearchResult:
    with swsearch.search({"q": query}, subjects, engine="cpu", **asked) as results:
        (result,) = results
    return result


@pytest.mark.parametrize(
    "asked", [{"statistics": "published"}, {"max_alignments": 3}, {"mode": "semiglobal"}, {"query_mask": "lower"}]
)
def test_the_part_finds_what_the_cut_query_finds(case: tuple[str, dict[str, str]], asked: dict[str, Any]) -> None:
    query, subjects = case
    query = query[:40] + query[40:50].lower() + query[50:]
    cut = found(query[FIRST - 1 : LAST], subjects, **asked).to_columns()
    part = found(query, subjects, query_loc=f"{FIRST}-{LAST}", **asked).to_columns()
    assert len(cut["score"]) > 5
    for name in ("query_start", "query_end"):
        cut[name] = [place + FIRST - 1 for place in cut[name]]
    assert part == cut
    assert part["query_length"][0] == LAST - FIRST + 1  # as blastp prints it


@pytest.mark.parametrize(
    "given",
    ["10", "10-", "-80", "80-10", "0-80", "a-b", "1-99999999999", (1,), (1, 2, 3), (1.0, 2), (True, 2), 7, ""],
)
def test_what_is_no_part_is_told(given: Any) -> None:
    with pytest.raises(OptionError, match=r"query_loc: got .*, expected first and last residue, counted from 1"):
        SearchOptions(query_loc=given)


def test_a_query_that_ends_before_the_part_and_what_has_no_parts_is_told(case: tuple[str, dict[str, str]]) -> None:
    query, subjects = case
    assert found(query, subjects, query_loc="131-500").query_length == 10  # to the end
    with pytest.raises(InputError, match="query q: got 140 residues, expected at least 141 for --query-loc 141-150"):
        found(query, subjects, query_loc="141-150")
    with pytest.raises(OptionError, match=r"query_loc: got .*, expected none with --iterations 2; cut the queries"):
        found(query, subjects, query_loc="1-50", iterations=2)
    profile = swsearch.Profile.from_alignment(QueryAlignment.from_query("q", "", PROTEIN.encode(query)))
    with pytest.raises(InputError, match="query q: got --query-loc with a profile, expected a protein"):
        found(profile, subjects, query_loc="1-50")


@pytest.mark.peer
@pytest.mark.exhaustive
@pytest.mark.skipif(not shutil.which("blastp"), reason="blastp is not installed")
def test_blastp_prints_the_same_lines(case: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    query, subjects = case
    (tmp_path / "q.fa").write_text(f">q\n{query}\n")
    (tmp_path / "s.fa").write_text("".join(f">{name}\n{letters}\n" for name, letters in subjects.items()))
    columns = "6 qseqid sseqid qlen qstart qend sstart send score evalue qcovs qcovhsp"
    words = ["blastp", "-query", "q.fa", "-subject", "s.fa", "-outfmt", columns, "-comp_based_stats", "0"]
    words += ["-query_loc", f"{FIRST}-{LAST}", "-max_hsps", "1", "-evalue", "1e-3"]
    theirs = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    result = found(query, subjects, query_loc=(FIRST, LAST), statistics="published", evalue=1e-3)
    stream = io.StringIO()
    swsearch.write(result, stream, columns)
    assert sorted(theirs.splitlines()) == sorted(stream.getvalue().splitlines()) != []
