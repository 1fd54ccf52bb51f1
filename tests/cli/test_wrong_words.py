"""Names of BLAST, HMMER and others lead to ours: wrong_words.txt, beside this file, is the table of them."""

import gzip
import shlex
from pathlib import Path

import pytest
from conftest import ROOT

from support.command_line import refusal

TABLE = Path(__file__).with_name("wrong_words.txt").read_text(encoding="utf-8")


def rows(kind):
    """Yield the command lines of the table that end in errors or in notes, and what is said of them."""
    for block in TABLE.split("\n\n"):
        line, *told = block.strip().splitlines()
        if line.startswith("swsearch ") and told[0].startswith(f"    {kind}"):
            yield pytest.param(line.removeprefix("swsearch "), [each.strip() for each in told], id=line)


ERRORS, NOTES = list(rows("error")), list(rows("note"))


def test_the_table_is_whole():
    assert len(ERRORS) >= 150
    assert len(NOTES) >= 24
    assert len(ERRORS) + len(NOTES) == len({row.id for row in (*ERRORS, *NOTES)}) == TABLE.count("\nswsearch ")


@pytest.mark.parametrize(("line", "told"), ERRORS)
def test_a_wrong_command_line_ends_with_one_sentence(swsearch, tmp_path, line, told):
    before = sorted(tmp_path.iterdir())
    kind, _, problem = told[0].partition(": ")
    assert refusal(swsearch(*shlex.split(line)), code=int(kind.removeprefix("error") or 1)) == problem
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("line", "told"), NOTES)
def test_an_option_without_effect_is_taken_with_a_note(swsearch, line, told):
    code, _, err = swsearch(*shlex.split(line))
    assert code == 0, err
    assert [f"swsearch: {each}" for each in told] == [each for each in err.splitlines() if "no effect" in each]


def test_what_acts_on_a_terminal_is_shown_escaped(swsearch):
    told = refusal(swsearch("search", "\x1b[31m", "-\x1bx"))
    assert told == r"swsearch search has no option -\x1bx; swsearch search --help lists what there is"


def test_quiet_leaves_out_the_notes(swsearch):
    blastp = ["search", "q.fasta", "d.h5", "-word_size", "3", "-comp_based_stats", "0"]
    _, out, err = swsearch(*blastp)
    assert err.count("note: ") == 2
    for quiet in ("-q", "--quiet", "-qv"):
        assert "note: " not in swsearch(*blastp, quiet)[2]
    assert swsearch(*blastp, "-q")[1] == out == swsearch("search", "q.fasta", "d.h5")[1] != ""


def test_an_error_comes_without_notes(swsearch):
    ended = swsearch("search", "q.fasta", "d.h5", "-word_size", "3", "-evalue", "low")
    assert "--evalue: got 'low'" in refusal(ended)


def test_a_value_of_ours_is_no_option_of_others(swsearch):
    assert swsearch("search", "q.fasta", "d.h5", "-q", "-o", "-seg")[0] == 0
    assert Path("-seg").read_text(encoding="utf-8") != ""


def test_a_pssm_and_an_alignment_are_queries(swsearch):
    data = ROOT / "tests" / "profiles" / "data"
    Path("sh3.asn").write_bytes(gzip.decompress((data / "sh3.asn.gz").read_bytes()))
    Path("rows.fasta").write_text(">one\nMKVLAAGIVGWW\n>two\nMKV-AAGIVGWW\n", encoding="utf-8")
    for name, file, form in (("-in_pssm", "sh3.asn", "asn"), ("-in_msa", "rows.fasta", "fasta-aligned")):
        given = ["--outfmt", "6 qseqid sseqid score", "--evalue", "1e6", "-q"]
        code, out, err = swsearch("search", name, file, "-db", "d.h5", *given)
        assert (code, err) == (0, "")
        assert out == swsearch("search", file, "d.h5", "--query-format", form, *given)[1] != ""


def test_the_format_that_the_user_names_goes_before_that_of_in_msa(swsearch):
    Path("rows.a3m").write_text(">one\nMKVLAAGIVGWW\n>two\nMKV-AAgGIVGWW\n", encoding="utf-8")
    assert "name the format" in refusal(swsearch("search", "-in_msa", "rows.a3m", "-db", "d.h5"))
    code, out, _ = swsearch("search", "-in_msa", "rows.a3m", "-db", "d.h5", "--query-format", "a3m", "-q")
    assert code == 0
    assert out


def test_msa_takes_psiblasts_names(swsearch):
    theirs = "-query q.fasta -db d.h5 -out a -num_iterations 2 -inclusion_ethresh 0.1 -num_threads 1 -q"
    ours = "q.fasta d.h5 -o b --iterations 2 --inclusion-evalue 0.1 -q"
    assert [swsearch("msa", *shlex.split(words))[0] for words in (theirs, ours)] == [0, 0]
    texts = [{each.name: each.read_text(encoding="utf-8") for each in Path(name).iterdir()} for name in "ab"]
    assert texts[0] == texts[1] != {}


def test_makeblastdbs_names_mean_the_same(swsearch):
    Path("more.fasta").write_text(">three\nMKVLAAGIVGWW\n", encoding="utf-8")
    words = ["-in", "q.fasta more.fasta", "-dbtype", "prot", "-parse_seqids", "-out", "both.h5", "-q"]
    assert swsearch("db", "build", *words) == (0, "", "")
    assert swsearch("db", "append", "d.h5", "-in", "more.fasta", "-q")[0] == 0
    entries = swsearch("db", "fetch", "d.h5", "--all")[1]
    assert swsearch("db", "fetch", "both.h5", "--all")[1] == entries
    assert entries.count(">") == 3
