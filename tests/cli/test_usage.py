"""What is typed wrongly is told in one sentence of ours, whatever the parser underneath would make of it."""

import contextlib
import re
import shutil
import sys
from pathlib import Path

import pytest
import typer.main
from conftest import ROOT

from swsearch.cli import aliases, foreign, main
from swsearch.cli.whole import app
from swsearch.db import Database

SEQUENCE = "MKVLAAGIVGWWHHKDEFRTYPCNQS"

PARSERS = re.compile(
    "Input should be|Value error|Invalid value|No such [oc]|Missing|requires an arg|unexpected|Traceback|Usage:|╭"
)
"""Words of typer, click and pydantic."""


def leaves(command, path=()):
    """Yield every command that has no subcommands, with its path."""
    for name, each in command.commands.items():
        if hasattr(each, "commands"):
            yield from leaves(each, (*path, name))
        else:
            yield (*path, name), each


COMMANDS = dict(leaves(typer.main.get_command(app)))

FILES = {
    ("search",): ["q.fasta", "d.h5"],
    ("msa",): ["q.fasta", "d.h5", "-o", "alignments"],
    ("align",): [SEQUENCE, SEQUENCE],
    ("serve",): ["d.h5", "--folder", "state", "--port", "0", "--engine", "cpu"],
    ("doctor",): [],
    ("completion",): ["bash"],
    ("db", "build"): ["q.fasta", "-o", "new.h5"],
    ("db", "split"): ["d.h5", "-o", "new.json", "--volumes", "1"],
    ("db", "info"): ["d.h5"],
    ("db", "verify"): ["d.h5"],
    ("db", "append"): ["new.h5", "q.fasta", "--on-duplicate", "keep"],
    ("db", "fetch"): ["d.h5", "one"],
    ("db", "remove"): ["new.h5", "one"],
    ("db", "merge"): ["d.h5", "-o", "merged.h5"],
    ("bench", "search"): ["q.fasta", "q.fasta", "--no-peers", "--runs", "1"],
    ("bench", "align"): ["--random", "10", "--runs", "1"],
    ("bench", "study"): ["--check-only"],
}
"""Words that each command can do with."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of what `FILES` names."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "q.fasta").write_text(f">one\n{SEQUENCE}\n>two\n{SEQUENCE[5:]}\n")
    for name in ("d.h5", "new.h5"):
        Database.build([folder / "q.fasta"], folder / name).close()
    return folder


@pytest.fixture
def swsearch(files, tmp_path, monkeypatch, capsys):
    """Run a command line in this process; returns its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    for each in files.iterdir():
        shutil.copy(each, each.name)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["swsearch", *words])
        try:
            code = main.main() or 0
        except SystemExit as ended:
            code = ended.code or 0
        return code, *capsys.readouterr()

    return run


def refusal(ended):
    """Check that a command ended with exit code 1 and one sentence, and return it."""
    code, out, err = ended
    lines = [line for line in err.splitlines() if "warning" not in line and " is taken as " not in line]
    assert (code, out, len(lines)) == (1, "", 1), ended
    assert lines[0].startswith("swsearch: error: "), ended
    assert not PARSERS.search(err), err
    assert len(err) < 400, err
    return lines[0].removeprefix("swsearch: error: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("-o=x", "swsearch search: got -o=x; did you mean --output x, or -o x?"),
        ("-qo=x", "swsearch search: got -qo=x; did you mean --output x, or -o x?"),
        ("-output x", "did you mean --output x?"),
        ("-output=x", "did you mean --output x?"),
        ("-outptu x", "did you mean --output x?"),
        ("-outfile x", "did you mean --output x?"),
        ("-out.tsv", "swsearch search has no option -out.tsv"),
        ("-e 1", "did you mean --evalue 1?"),
        ("-k10", "did you mean --max-hits 10?"),
        ("--max 4", "did you mean --max-hits or --max-alignments?"),
        ("--top 4", "the N best hits are --max-hits N"),
        ("--taxonlist 9606", "--taxids or --exclude-taxids"),
        ("--id 30", "did you mean --min-identity 30?"),
        ("--min-seq-id 0.3", "--min-identity takes a percentage, 30 for 0.3"),
        ("--query-cover 30", "did you mean --min-query-coverage 30?"),
        ("--very-sensitive", "--preset sensitive"),
        ("-task blastp-fast", "--task: got 'blastp-fast', expected default or short; no words are looked for"),
        ("-task long", "--task: got 'long', expected one of default, short"),
        ("--task short --preset sensitive", "got --task short and --preset sensitive, expected one of them"),
        ("-evalue low", "--evalue: got 'low', expected a number"),
        ("-evalue", "swsearch search: --evalue needs a value, got nothing"),
        ("-num_threads=", "swsearch search: --threads needs a value"),
        ("-max_hits 4", "did you mean --max-hits 4?"),
        ("--header --outfmt jsonl", "--header: got --outfmt jsonl, expected 6 or 10"),
        ("--exhaustive-search", "it is not needed"),
        ("-word_size 3", "it is not needed"),
        ("-seg yes", "--query-mask tantan"),
        (
            "-comp_based_stats 0",
            "E-values know the composition of both sequences; --statistics published",
        ),
        ("-d x", "the database is the second argument"),
        ("-i x", "the queries are the first argument"),
        ("-db=", "swsearch search: -db needs a value, expected the name of a file"),
        ("-query a -query b", "swsearch search: -query is there twice, expected one file of queries"),
        ("--fats", "swsearch search has no option --fats; swsearch search --help lists what there is"),
        ("--quiet=1", "swsearch search: --quiet takes no value, got '1'"),
        ("-q=1", "swsearch search: -q takes no value, got '1'"),
        ("--evalue", "swsearch search: --evalue needs a value, got nothing; expected --evalue NUMBER"),
        ("-o", "swsearch search: -o needs a value, got nothing; expected --output FILE"),
        ("-o -q", "swsearch search: -o needs a value, got the option -q"),
        ("--output --quiet", "swsearch search: --output needs a value, got the option --quiet"),
        ("--output=", "swsearch search: --output needs a value; expected --output FILE"),
        ("-version", "swsearch --version shows it"),
        ("--mode locl", "--mode: got 'locl', expected one of local, global, semiglobal; did you mean local?"),
        ("--mode LOCAL", "--mode: got 'LOCAL', expected one of local, global, semiglobal; did you mean local?"),
        ("--evalue low", "--evalue: got 'low', expected a number, such as 10, 0.001 or 1e-5"),
        ("--device 0,,1", "--device: got '0,,1', expected the number of a GPU, several with commas between them"),
        ("--device 1.5", "--device: got '1.5', expected the number of a GPU"),
        ("--device all --engine cpu", "device: got 'all', expected none with engine cpu"),
        ("--devices 2", "--engine gpu, with --device N for one of several GPUs"),
    ],
)
def test_what_search_has_not_is_told(swsearch, tmp_path, words, told):
    before = sorted(tmp_path.iterdir())
    assert told in refusal(swsearch("search", "q.fasta", "d.h5", *words.split()))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("nonsense", "swsearch has no command 'nonsense'; expected one of"),
        ("serch a b", "did you mean swsearch search?"),
        ("blastp -query x", "did you mean swsearch search?"),
        ("-query x", "swsearch has no option -query; options follow a command, one of"),
        ("db makeblastdb", "did you mean swsearch db build?"),
        ("db x", "swsearch db has no command 'x'; expected one of build"),
        ("search", "swsearch search: QUERIES is missing, expected swsearch search QUERIES SUBJECTS"),
        ("search q.fasta", "swsearch search: SUBJECTS is missing"),
        ("db build q.fasta", "swsearch db build: --output DB.h5 is missing"),
        ("db build -in q.fasta -dbtype prot", "FASTA files are arguments"),
        ("db fetch d.h5", "ID..., --ids, --all: got neither, expected identifiers, a list of them, or --all"),
        ("align -asequence x", "the first argument, A, holds the queries"),
        ("align MKV MKV --evalue 1", "pairs have no E-values"),
        ("bench --runs 0", "--runs: got '0', expected a whole number from 1 to 1,000"),
        ("completion tcsh", "shell: got 'tcsh', expected one of bash, zsh, fish"),
        ("doctor now", "DATABASE: got 'now', expected --cluster beside it"),
        ("search \x1b[31m -\x1bx", r"swsearch search has no option -\x1bx"),
    ],
)
def test_what_a_command_line_lacks_is_told(swsearch, words, told):
    assert told in refusal(swsearch(*words.split(" ")))


@pytest.mark.parametrize(
    "words",
    [
        "-qv",
        "-qo hits",
        "-ohits",
        "-o-",
        "-o -",
        "--output=hits",
        "--evalue=1",
        "-o =x",
        "-ok=v.tsv",
        "--min-score -5",
    ],
)
def test_what_is_right_stays_right(swsearch, words):
    code, _, err = swsearch("search", "q.fasta", "d.h5", *words.split())
    assert code == 0, err


@pytest.mark.parametrize(
    "words",
    [
        "-query q.fasta -db d.h5 -out {out} -evalue 1 -max_target_seqs 2 -num_threads 1 -outfmt 6",
        "-db d.h5 --query=q.fasta --out={out} --evalue=1 --max-target-seqs=2 --num_threads 1 --outfmt=6",
        "-subject d.h5 -evalue=1 -max_target_seqs=2 -out {out} q.fasta",
        "q.fasta d.h5 -o {out} --evalue 1 --max_hits 2 -task blastp",
    ],
)
def test_blastps_names_mean_the_same(swsearch, words):
    assert swsearch("search", "q.fasta", "d.h5", "--evalue", "1", "--max-hits", "2", "-o", "plain.tsv")[0] == 0
    assert swsearch("search", *words.format(out="named.tsv").split())[0] == 0
    assert Path("named.tsv").read_text() == Path("plain.tsv").read_text() != ""


def test_a_list_of_databases_is_one_word_of_db(swsearch):
    shutil.copy("d.h5", "e.h5")
    code, out, _ = swsearch("search", "-query", "q.fasta", "-db", "d.h5 e.h5", "-outfmt", "6 sseqid", "--header")
    assert (code, out.splitlines()) == (0, ["sseqid", "one", "one", "two", "two", "two", "two", "one", "one"])


def test_every_alias_leads_to_an_option_and_is_none_itself():
    commands = {" ".join(["swsearch", *path]): command for path, command in COMMANDS.items()}
    for path, names in aliases.ALIASES.items():
        ours = {spelling for option in commands[path].params for spelling in option.opts}
        assert set(names.values()) - ours == {aliases.FIRST_ARGUMENT, aliases.OTHER_ARGUMENTS}
        for name in names:
            assert foreign.plain(name) == name, "this name is never found"


def test_the_task_for_peptides_is_a_preset_and_an_evalue(swsearch):
    peptide = ["search", "q.fasta", "d.h5", "-o"]
    assert swsearch(*peptide, "a.tsv", "--task", "short")[0] == 0
    assert swsearch(*peptide, "b.tsv", "--preset", "short", "--evalue", "20000")[0] == 0
    assert swsearch(*peptide, "c.tsv", "-task", "blastp-short", "--evalue", "1e-26")[0] == 0
    assert Path("a.tsv").read_text() == Path("b.tsv").read_text() != ""
    assert len(Path("c.tsv").read_text().splitlines()) < len(Path("a.tsv").read_text().splitlines())


def test_an_order_for_help_goes_before_what_is_missing(swsearch):
    for path in ((), ("db",), ("search",)):
        code, out, err = swsearch(*path, "--help")
        assert (code, err) == (0, "")
        assert "Usage" in out


def test_every_option_that_others_have_leads_to_one_of_ours():
    commands = {" ".join(["swsearch", *path]): command for path, command in COMMANDS.items()}
    for path in foreign._TABLES:
        ours = {spelling for option in commands[path].params for spelling in option.opts}
        for name in foreign.names(path):
            advice = foreign.advice(path, name)
            assert foreign.plain(name) == name, "this name is never found"
            assert f"--{name}" not in ours, f"{name} is our own"
            for word in re.findall(r"--[a-z-]+", advice):
                assert word in {*ours, "--output", "--statistics", "--include-ids", "--exclude-ids"}, advice


SECTIONS = {
    "Options of blastp": ("search",),
    "Options of makeblastdb": ("db", "build"),
    "Options of blastdbcmd": ("db", "fetch"),
}
"""Of the page for users of BLAST, and the commands that they are about."""


@pytest.mark.parametrize("title", SECTIONS)
def test_every_option_of_blasts_programs_is_known(title):
    page = (ROOT / "docs" / "howto" / "coming-from-blastp.md").read_text(encoding="utf-8")
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    theirs = re.findall(r"`-(\w+)`", "".join(re.findall(r"^\| (`-[^|]*) \|", section, re.MULTILINE)))
    assert len(theirs) > 15
    path = SECTIONS[title]
    known = foreign.names(" ".join(["swsearch", *path])) | {"h", "help", "version"}
    known |= set(aliases.ALIASES.get(" ".join(["swsearch", *path]), {}))
    known |= {spelling.lstrip("-") for option in COMMANDS[path].params for spelling in option.opts}
    assert {foreign.plain(name) for name in theirs} <= known


WRITTEN = ("--output", "--write", "--checkpoint", "--save-config", "--save-msa", "--save-profile")
"""Options that name what is written: what cannot be is an output error."""

NUMBERS = ("N", "N,...|all", "PERCENT", "SIZE", "RESIDUES")
HOSTILE = ["inf", "1" + "0" * 23, ""]
MORE = [
    "nan",
    "1e400",
    "-inf",
    "-1",
    "0",
    "1" + "0" * 26,
    "1e99999999999",
    "-0.5",
    "0x10",
    "\N{ARABIC-INDIC DIGIT ONE}",
    "1" * 5000,
    "1,5",
    "0,,1",
    "five",
    " ",
]


class EmptyHouse(contextlib.nullcontext):
    """A server's house that opens nothing."""

    def __init__(self, settings, log):
        super().__init__(self)
        self.settings, self.places, self.job = settings, {}, None


@pytest.mark.parametrize("value", [*HOSTILE, *(pytest.param(v, marks=pytest.mark.exhaustive) for v in MORE)])
@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
def test_no_value_of_an_option_does_harm(swsearch, path, value, monkeypatch):
    if path == ("serve",):
        monkeypatch.setattr("swsearch.server.house.House", EmptyHouse)
        monkeypatch.setattr("swsearch.server.serving.LabServer.serve_until_ended", lambda server: None)
    for option in COMMANDS[path].params:
        if option.param_type_name == "argument" or option.is_flag:
            continue
        name = next(each for each in option.opts if each.startswith("--"))
        ended = swsearch(*path, *FILES[path], f"{name}={value}")
        if ended[0] in (0, 7):  # no GPU here
            assert "Traceback" not in ended[2]
            assert not (value in HOSTILE and option.metavar in NUMBERS), name
        elif ended[0] != 6 or name not in WRITTEN:
            refusal(ended)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_option_is_shown_with_a_value_of_its_own_name(words):
    """Typer 0.27 takes such a word for the option's name: --folder was --FOLDER there."""
    for option in COMMANDS[words].params:
        if option.param_type_name == "option":
            assert (option.metavar or "").lower() != option.name
