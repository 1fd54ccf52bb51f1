"""swsearch.server.blast_parameters: what parameters become, and what is said of those that are refused."""

from __future__ import annotations

import pytest

from swsearch.errors import InputError
from swsearch.server.blast_parameters import (
    PARAMETERS,
    BlastParameter,
    command_of,
    notes_on,
    parse_parameters,
    request_of,
    sentence_of,
)
from swsearch.server.errors import ServerProblem, problem_of

DATABASES = ("sprot", "trembl")
PROTEIN = "MKVLAAGIVGLCAKAWE"


def asked(**changed: str | None) -> dict[str, str]:
    """The words of a Put with some of them changed; None leaves one out."""
    usual: dict[str, str | None] = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "sprot", "QUERY": PROTEIN}
    return parse_parameters([(name, value) for name, value in (usual | changed).items() if value is not None])


def said_of(**changed: str | None) -> str:
    """The sentence that a Put is refused with."""
    with pytest.raises(InputError) as caught:
        request_of(asked(**changed), DATABASES)
    return sentence_of(problem_of(caught.value))


def test_every_option_that_there_is() -> None:
    request = request_of(
        asked(
            EXPECT="1e-3", HITLIST_SIZE="7", MATRIX="blosum80", GAPCOSTS="10 1", FILTER="F", LCASE_MASK="yes",
            COMPOSITION_BASED_STATISTICS="0", JOB_TITLE="mine", QUERY=">a\nMKV\n>b\nMLL", QUERY_FROM="2",
        ),
        DATABASES,
    )  # fmt: skip
    assert request.options == {
        "evalue": 1e-3, "max_hits": 7, "matrix": "BLOSUM80", "gap_open": 10, "gap_extend": 1, "query_mask": "lower",
        "statistics": "published", "query_loc": "2-1000000000",
    }  # fmt: skip
    assert request.search_options.scoring.matrix.name == "BLOSUM80"
    assert request.title == "mine"
    assert request.queries == b">a\nMKV\n>b\nMLL"


@pytest.mark.parametrize("word", ["0", "F", "none", "off", "No", "FALSE"])
def test_no_composition_in_every_word_that_clients_have(word: str) -> None:
    assert request_of(asked(COMPOSITION_BASED_STATISTICS=word), DATABASES).options == {"statistics": "published"}


def test_blastx_takes_dna_and_a_genetic_code() -> None:
    dna = {"PROGRAM": "blastx", "QUERY": "ACGTACGTTGCA"}
    assert request_of(asked(**dna), DATABASES).options["translate"] is True
    assert request_of(asked(**dna, GENETIC_CODE="11"), DATABASES).options["genetic_code"] == 11
    with pytest.raises(InputError, match="GENETIC_CODE: got 'x', expected a whole number"):
        request_of(asked(**dna, GENETIC_CODE="x"), DATABASES)
    blastp = asked(GENETIC_CODE="11")
    assert "genetic_code" not in request_of(blastp, DATABASES).options
    assert "GENETIC_CODE has no effect: queries of blastp are proteins" in notes_on(blastp)


def test_a_dna_database_has_programs_of_its_own() -> None:
    dna = ("trembl",)
    tblastn = asked(PROGRAM="tblastn", DATABASE="trembl", GENETIC_CODE="11", DB_GENETIC_CODE="11")
    assert request_of(tblastn, DATABASES, dna).options == {}
    assert {
        "GENETIC_CODE has no effect: queries of tblastn are proteins",
        "DB_GENETIC_CODE has no effect: a DNA database has its own",
    } <= set(notes_on(tblastn))
    tblastx = asked(PROGRAM="TBLASTX", DATABASE="trembl", QUERY="ACGTACGTTGCA", GENETIC_CODE="11")
    assert request_of(tblastx, DATABASES, dna).options == {"translate": True, "genetic_code": 11}
    with pytest.raises(InputError, match="expected tblastn, or tblastx for DNA queries: trembl holds DNA"):
        request_of(asked(DATABASE="trembl"), DATABASES, dna)
    with pytest.raises(InputError, match="expected blastp, or blastx for DNA queries: sprot holds proteins"):
        request_of(asked(PROGRAM="tblastn"), DATABASES, dna)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("COMPOSITION_BASED_STATISTICS", "2", "expected 0: BLAST's adjustments of scores are not there"),
        ("COMPOSITION_BASED_STATISTICS", "yes", "expected 0"),
        ("FILTER", "L", "there is no SEG here; mask queries beforehand as lower case"),
        ("FILTER", "mL", "there is no SEG here"),
        ("PROGRAM", "blastn", "expected blastp, or blastx for DNA queries"),
        ("PROGRAM", None, "PROGRAM: got none, expected blastp"),
        ("QUERY", None, "QUERY: got none, expected proteins, or DNA for blastx, as FASTA"),
        ("DATABASE", None, "DATABASE: got none, expected the name of one database"),
        ("DATABASE", "nr", "expected one of sprot, trembl"),
        ("DATABASE", "sprot trembl", "one at a time"),
        ("QUERY", "P69905", "nothing is looked up by identifiers here"),
        ("QUERY", "P69905\nNP_000549.1", "nothing is looked up by identifiers here"),
        ("QUERY", "MKV{}", "whose first line begins with >"),
        ("EXPECT", "0", "EXPECT: got '0', expected a number > 0"),
        ("EXPECT", "nan", "expected a number > 0"),
        ("EXPECT", "inf", "expected a number > 0"),
        ("HITLIST_SIZE", "-1", "expected a whole number >= 1"),
        ("HITLIST_SIZE", "1" * 5000, "expected a whole number >= 1"),
        ("HITLIST_SIZE", "٣", "expected a whole number >= 1"),
        ("GAPCOSTS", "11", "such as 11 1"),
        ("GAPCOSTS", "11 1 1", "such as 11 1"),
        ("MATRIX", "/etc/passwd", "MATRIX: got '/etc/passwd', expected one of BLASTP"),
        ("LCASE_MASK", "perhaps", "expected yes or no"),
        ("JOB_TITLE", "a\0b", None),
    ],
)
def test_what_is_wrong_is_said_in_blasts_words(name: str, value: str | None, said: str | None) -> None:
    if said is None:  # what acts on a terminal becomes a blank
        assert request_of(asked(**{name: value}), DATABASES).title == "a b"
    else:
        assert said in said_of(**{name: value})


def test_two_names_of_one_thing_must_agree() -> None:
    assert request_of(asked(MATRIX="PAM30", MATRIX_NAME="pam30"), DATABASES).options["matrix"].upper() == "PAM30"
    assert "expected one of them" in said_of(MATRIX="PAM30", MATRIX_NAME="PAM70")


def test_names_in_any_case_and_values_with_blanks_around() -> None:
    words = parse_parameters([("cmd", " Put "), ("Query", f"\n{PROTEIN}\n"), ("DATABASE", ""), ("database", "sprot")])
    assert words == {"CMD": "Put", "QUERY": PROTEIN, "DATABASE": "sprot"}
    assert command_of(words) == "Put"


@pytest.mark.parametrize("given", ["", "Info", "DisplayRIDs", "Web"])
def test_commands_that_there_are_not(given: str) -> None:
    with pytest.raises(InputError, match="expected one of Put, Get, Delete"):
        command_of(parse_parameters([("CMD", given)]))


def test_a_value_that_is_there_twice() -> None:
    assert parse_parameters([("RID", "A"), ("rid", "A")]) == {"RID": "A"}
    with pytest.raises(InputError, match="DATABASE: got 'a' and 'b', expected one of them"):
        parse_parameters([("DATABASE", "a"), ("DATABASE", "b")])


def test_an_unknown_parameter_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(InputError, match="got the parameter 'EXPCT', which is not known here; did you mean EXPECT"):
        parse_parameters([("EXPCT", "1")])


REFUSED = [word for word in PARAMETERS.values() if word.effect == "refused"]


@pytest.mark.parametrize("word", REFUSED, ids=lambda word: word.name)
def test_each_that_is_refused_says_why_and_takes_what_asks_for_nothing(word: BlastParameter) -> None:
    with pytest.raises(InputError) as caught:
        parse_parameters([(word.name, "something")])
    assert f"{word.name}: got 'something', which is not supported: {word.meaning}" in str(caught.value)
    for harmless in word.allowed:
        assert parse_parameters([(word.name, harmless.upper())]) == {word.name: harmless.upper()}


def test_what_has_no_effect_is_said() -> None:
    notes = notes_on(asked(WORD_SIZE="6", COMPOSITION_BASED_STATISTICS="0"))
    assert notes == ["WORD_SIZE has no effect: no words are looked for: every subject is scored"]
    assert len(notes_on(asked())) == 1
    assert "COMPOSITION_BASED_STATISTICS of 0" in notes_on(asked())[0]


def test_options_in_messages_of_others_are_called_as_blast_does() -> None:
    problem = ServerProblem("too_large", "max_hits: got 9999, expected at most 5,000", option="max_hits")
    assert sentence_of(problem) == "HITLIST_SIZE: got 9999, expected at most 5,000"
    assert sentence_of(ServerProblem("too_many", "the queue is full", option="max_hits")) == "the queue is full"
    assert sentence_of(ServerProblem("wrong", "mode: got 'x'", option="mode")) == "mode: got 'x'"
