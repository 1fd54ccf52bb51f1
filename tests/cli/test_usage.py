"""What is typed wrongly is told in one sentence of ours, whatever the parser underneath would make of it."""

import contextlib
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import typer.main
from conftest import ROOT

from support.command_line import refusal
from swsearch.cli import other_programs
from swsearch.cli.commands import app
from swsearch.cli.parameters import rows_taken
from swsearch.server.jobs import Jobs

SEQUENCE = "MKVLAAGIVGWWHHKDEFRTYPCNQS"


def leaves(command, path=()):
    """Yield every command that has no subcommands, with its path."""
    for name in command.list_commands(None):
        each = command.get_command(None, name)
        if hasattr(each, "list_commands"):
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
    ("db", "split"): ["d.h5", "-o", "new.json", "--volume-size", "1G"],
    ("db", "info"): ["d.h5"],
    ("db", "verify"): ["d.h5"],
    ("db", "append"): ["new.h5", "q.fasta", "--on-duplicate", "keep"],
    ("db", "fetch"): ["d.h5", "one"],
    ("db", "remove"): ["new.h5", "one"],
    ("db", "merge"): ["d.h5", "-o", "merged.h5"],
    ("db", "convert"): ["old.h5", "converted.h5"],
    ("bench", "search"): ["q.fasta", "q.fasta", "--no-peers", "--runs", "1"],
    ("bench", "align"): ["--random", "10", "--runs", "1"],
    ("bench", "study"): ["--check-only"],
}
"""Words that each command can do with."""


@pytest.mark.parametrize(
    "words",
    [
        "-qv",
        "-qo hits",
        "-o-",
        "-o./hits",
        "-qo./hits",
        "-o -",
        "--output=hits",
        "--evalue=1",
        "-o =x",
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


def others_of(command, path):
    """Names of other programs that a command knows of."""
    return {
        *other_programs.advice_of(path, rows_taken(command)),
        *other_programs.aliases_of(path, rows_taken(command)),
    }


def test_every_alias_leads_to_an_option_and_is_none_itself():
    commands = {" ".join(["swsearch", *path]): command for path, command in COMMANDS.items()}
    for path, command in commands.items():
        names = other_programs.aliases_of(path, rows_taken(command))
        ours = {spelling for option in command.params for spelling in option.opts}
        told = {word.partition("=")[0] for target in names.values() for word in target.split()}
        assert told <= {*ours, other_programs.FIRST_ARGUMENT, other_programs.OTHER_ARGUMENTS}
        assert path != "swsearch search" or not set(other_programs._tables()["values"]) - set(names)
        for name in names:
            assert other_programs.plain(name) == name, "this name is never found"


def test_an_option_without_effect_is_neither_ours_nor_an_alias():
    commands = {" ".join(["swsearch", *path]): command for path, command in COMMANDS.items()}
    for path, command in commands.items():
        ours = {spelling for option in command.params for spelling in option.opts}
        others = others_of(command, path)
        for name, each in other_programs.no_effect_of(path).items():
            assert other_programs.plain(name) == name, "this name is never found"
            assert f"--{name}" not in ours, f"{name} is our own"
            assert name not in others, f"{name} stands in two tables"
            for word in re.findall(r"--[a-z-]+", " ".join(each.values())):
                assert word in {*ours, "--save-profile", "--query-mask"}, each


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
    elsewhere = {"--output", "--statistics", "--include-ids", "--exclude-ids", "--version"}
    for path, command in commands.items():
        ours = {spelling for option in command.params for spelling in option.opts}
        for name, advice in other_programs.advice_of(path, rows_taken(command)).items():
            assert other_programs.plain(name) == name, "this name is never found"
            assert f"--{name}" not in ours, f"{name} is our own"
            for word in re.findall(r"--[a-z-]+", advice):
                assert word in {*ours, *elsewhere}, advice


SECTIONS = {
    "Options of blastp": ("search",),
    "Options of psiblast and tblastn": ("search",),
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
    known = others_of(COMMANDS[path], " ".join(["swsearch", *path])) | {"h", "help", "version"}
    known |= set(other_programs.no_effect_of(" ".join(["swsearch", *path])))
    known |= {spelling.lstrip("-") for option in COMMANDS[path].params for spelling in option.opts}
    assert {other_programs.plain(name) for name in theirs} <= known


@pytest.mark.parametrize("title", SECTIONS)
def test_the_page_says_which_options_are_taken(title):
    page = (ROOT / "docs" / "howto" / "coming-from-blastp.md").read_text(encoding="utf-8")
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    path = " ".join(["swsearch", *SECTIONS[title]])
    starred, without_effect = set(), set()
    for names, here in re.findall(r"^\| (`-[^|]*) \| ([^|]*) \|", section, re.MULTILINE):
        each = {other_programs.plain(name) for name in re.findall(r"`-(\w+)`", names)}
        starred |= each if names.endswith("*") else set()
        without_effect |= each if here == "no effect" else set()
    assert starred <= set(other_programs.aliases_of(path, rows_taken(COMMANDS[SECTIONS[title]])))
    assert without_effect <= set(other_programs.no_effect_of(path))


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


def no_jobs(settings):
    """Open nothing of a server."""
    return contextlib.nullcontext(Jobs(settings, {}, None))


@pytest.mark.parametrize("value", [*HOSTILE, *(pytest.param(v, marks=pytest.mark.exhaustive) for v in MORE)])
@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
def test_no_value_of_an_option_does_harm(swsearch, path, value, monkeypatch):
    if path == ("serve",):
        monkeypatch.setattr("swsearch.server.jobs.open_jobs", no_jobs)
        monkeypatch.setattr("swsearch.server.run.HttpServer.serve_until_ended", lambda server: None)
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


def test_the_table_of_other_programs_has_our_commands():
    text = (ROOT / "swsearch" / "cli" / "other_programs.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    groups, shared = {"swsearch", "swsearch db"}, {name for each in tables.values() for name in each.get("also", ())}
    assert set(tables.pop("commands")) == groups
    for name in ("programs", "values"):
        tables.pop(name)
    assert set(tables) - shared <= {" ".join(["swsearch", *path]) for path in COMMANDS}
    kinds = {key for each in tables.values() for said in each.values() if isinstance(said, dict) for key in said}
    assert kinds == {"argument", "no-effect", "values", "otherwise"}
