from __future__ import annotations

import random
import textwrap
from pathlib import Path

import pytest

from support.report_cases import QUERY, SUBJECT, make_result, report, with_two_alignments
from swsearch.options.kinds import Mode
from swsearch.report import pairwise

GOLDEN = Path(__file__).parents[1] / "golden" / "pairwise.txt"


def test_report_as_people_know_it() -> None:
    result = make_result(subjects=[("s1", "a subject", SUBJECT), ("s2", "", QUERY[:40])], effective=2_000_000)
    assert report("0", result, make_result(("q2", "", "WWW"), [])) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("mode", ["global", "semiglobal"])
def test_without_statistics_raw_scores_stand_alone_and_a_note_says_why(mode: Mode) -> None:
    result = make_result(subjects=[("s1", "", SUBJECT), ("s2", "", QUERY)], mode=mode)
    text = report("pairwise", result)
    note = f"Note: no E-values: no statistics are published for {mode} alignment; hits are ranked by score"
    assert " ".join(text.split()).count(note) == 1
    assert f"\n Score = {result[0].score}\n Identities" in text
    assert f"\nBest sequences:{'':55}(Raw)\n\ns1{'':68}{result[0].score}\n" in text
    assert not any(word in text for word in ("Expect", "bits", "nan", "None", "Lambda"))


def test_a_row_without_residues_shows_the_residue_before_it() -> None:
    text = report("0", make_result(("q", "", "WWWW"), [("s", "", "A" * 70 + "WWWW")], mode="global"))
    assert f"Query  0   {'-' * 60}  0\n           {' ' * 60}\nSbjct  1   {'A' * 60}  60\n" in text
    assert "Query  1   ----------WWWW  4\n                     WWWW\nSbjct  61  AAAAAAAAAAWWWW  74\n" in text


def test_an_alignment_with_an_empty_subject() -> None:
    text = report("0", make_result(("q", "", "WWWW"), [("s", "", "")], mode="global"))
    assert " Identities = 0/4 (0%), Positives = 0/4 (0%), Gaps = 4/4 (100%)\n\nQuery  1  WWWW  4\n" in text
    assert "\nSbjct  0  ----  0\n" in text


def test_long_titles_are_shortened_in_the_list_and_wrapped_before_the_alignment() -> None:
    description = "A description with several words so that it becomes long enough to be wrapped OS=Foo"
    text = report("0", make_result(subjects=[("sp|P00001|NAME1", description, QUERY), ("i" * 144, "end", QUERY)]))
    assert "\nsp|P00001|NAME1 A description with several words so that it becom...  " in text
    assert (
        "\n>sp|P00001|NAME1 A description with several words so that it becomes\nlong enough to be wrapped OS=Foo\n"
        in text
    )
    assert f"\n{'i' * 65}...  " in text
    assert f"\n>{'i' * 144}\nend\nLength=70\n" in text
    assert all(len(line) <= 92 for line in text.split("\n") if "iiii" not in line)


def test_hostile_and_merged_headers() -> None:
    description = "tab\there \x1b[31m\r\n\x85 \udc80 \u00fc\x01second|two other\x01third"
    text = report("0", make_result(("q\x1b", "\n>x", QUERY), [("s", description, QUERY)]))
    text.encode()
    assert text.split("\n") == [*text.splitlines(), ""]
    assert "\x1b" not in text
    assert "\n>s tab here  [31m    \ufffd \u00fc\n second|two other\n third\nLength=70\n" in text


def test_further_alignments_follow_two_blank_lines_as_in_blastps_report() -> None:
    text = report("0", with_two_alignments(make_result()))
    assert text.count("Length=72") == 1
    assert "\nSbjct  62  VKALPDAQF  70\n\n\n Score = 29.4 bits (" in text
    assert "\nQuery  48  LSGAEKAVQVKVKALPDAQF  67\n" in text


def test_titles_are_wrapped_as_textwrap_does() -> None:
    generator = random.Random(3)
    for _ in range(1000):
        words = [
            generator.choice("ab-\u00e9\u3000") * generator.choice((1, 5, 30, 66, 67, 68, 69, 90)) for _ in range(6)
        ]
        text = generator.choice((">", " ", "")) + "".join(
            word + " " * generator.choice((1, 1, 1, 2)) for word in words
        )
        text = text[: generator.randint(0, len(text))]
        expected = textwrap.wrap(text, 68, break_long_words=False, break_on_hyphens=False) or [""]
        assert pairwise._wrap(text) == expected, text
