"""Typing errors: swsearch reports each in one sentence of its own, whatever the parser would say."""

import contextlib
import re
import shutil
import tomllib

import pytest
import typer.main
from conftest import ROOT

from support.command_line import refusal
from swsearch.cli import other_programs
from swsearch.cli.main import app
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


def test_a_list_of_databases_is_one_word_of_db(swsearch):
    shutil.copy("d.h5", "e.h5")
    code, out, _ = swsearch("search", "-query", "q.fasta", "-db", "d.h5 e.h5", "-outfmt", "6 sseqid", "--header")
    assert (code, out.splitlines()) == (0, ["sseqid", "one", "one", "two", "two", "two", "two", "one", "one"])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_names_of_others_are_none_of_ours_and_lead_to_ours(words):
    path, command = " ".join(["swsearch", *words]), COMMANDS[words]
    ours = {spelling for option in command.params for spelling in option.opts}
    aliases = other_programs.aliases_of(path, rows_taken(command))
    advice, idle = other_programs.advice_of(path, rows_taken(command)), other_programs.options_without_effect(path)
    assert not {f"--{name}" for name in (*advice, *idle)} & ours
    assert not idle.keys() & (aliases.keys() | advice.keys())
    assert [
        name for name in (*aliases, *advice, *idle) if other_programs.normalize_option(name) != name
    ] == []  # never found
    meant = {word.partition("=")[0] for target in aliases.values() for word in target.split()}
    assert meant <= {*ours, other_programs.FIRST_ARGUMENT, other_programs.OTHER_ARGUMENTS}
    texts = " ".join([*advice.values(), *(text for each in idle.values() for text in each.values())])
    elsewhere = {"--output", "--statistics", "--include-ids", "--exclude-ids", "--version", "--save-profile"}
    assert set(re.findall(r"--[a-z-]+", texts)) <= {*ours, *elsewhere, "--query-mask"}
    assert path != "swsearch search" or not set(other_programs._tables()["values"]) - set(aliases)


def test_an_order_for_help_goes_before_what_is_missing(swsearch):
    for path in ((), ("db",), ("search",)):
        code, out, err = swsearch(*path, "--help")
        assert (code, err) == (0, "")
        assert "Usage" in out


SECTIONS = {
    "Options of blastp": ("search",),
    "Options of psiblast and tblastn": ("search",),
    "Options of makeblastdb": ("db", "build"),
    "Options of blastdbcmd": ("db", "fetch"),
}
"""Sections of the page of BLAST's options, and the commands that they are about."""


@pytest.mark.parametrize("title", SECTIONS)
def test_every_option_of_blasts_programs_is_known_and_the_page_says_which_are_taken(title):
    page = (ROOT / "docs" / "reference" / "blast-options.md").read_text(encoding="utf-8")
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    command, path = COMMANDS[SECTIONS[title]], " ".join(["swsearch", *SECTIONS[title]])
    aliases, idle = (
        other_programs.aliases_of(path, rows_taken(command)),
        set(other_programs.options_without_effect(path)),
    )
    known = {"h", "help", "version", *aliases, *idle, *other_programs.advice_of(path, rows_taken(command))}
    known |= {spelling.lstrip("-") for option in command.params for spelling in option.opts}
    rows = re.findall(r"^\| (`-[^|]*) \| ([^|]*) \|", section, re.MULTILINE)
    assert len(rows) > 10
    for names, here in rows:
        theirs = {other_programs.normalize_option(name) for name in re.findall(r"`-(\w+)`", names)}
        assert theirs <= known
        assert not names.endswith("*") or theirs <= set(aliases)
        assert here != "no effect" or theirs <= idle


WRITTEN = ("--output", "--write", "--checkpoint", "--save-config", "--save-msa", "--save-profile")
"""Options that name what is written: what cannot be is an output error."""

NUMBERS = ("N", "N,...|all", "PERCENT", "SIZE", "RESIDUES")
HOSTILE = ["inf", "1" + "0" * 23, ""]
MORE = [
    "nan", "1e400", "-inf", "-1", "0", "1" + "0" * 26, "1e99999999999", "-0.5", "0x10", "\N{ARABIC-INDIC DIGIT ONE}",
    "1" * 5000, "1,5", "0,,1", "five", " ",
]  # fmt: skip


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
