"""The manual pages are those of the commands as they are, and groff sets them without a word."""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT

PAGES = sorted((ROOT / "docs" / "man").glob("*.1"))


@pytest.fixture
def manpages(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import manpages

    return manpages


def substance(page):
    """A page without what versions of typer write differently: the usage, and what stands in brackets or angles."""
    page = re.sub(r"(?s)\.SH SYNOPSIS\n.*?(?=\.SH )", "", page)
    page = re.sub(r"\\fI[^\n]*", "", page)
    return re.sub(r"\[(default|required|env var|x>=)[^]]*\]", "", page)


@pytest.mark.exhaustive
def test_pages_say_what_the_commands_say(manpages):
    made = {name: substance(page) for name, page in manpages.pages().items()}
    there = {path.name: substance(path.read_text(encoding="utf-8")) for path in PAGES}
    stale = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    assert stale == [], "python packaging/manpages.py writes them"


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_nothing_to_say(tmp_path):
    for path in PAGES:
        command = ["groff", "-man", "-ww", "-Tascii", "-Kutf8", "-P-c", "-rLL=100n", path]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == "", path.name
        assert f"{path.stem} - " in " ".join(re.sub(".\b", "", done.stdout).split())


def test_text_is_shown_as_it_is(manpages):
    assert manpages.escape(".h5 and 'x' \\n") == r"\&.h5 and \(aqx\(aq \en"
    assert manpages.escape("'tis -x ~/a") == r"\(aqtis \-x \(ti/a"


@pytest.mark.parametrize(
    ("item", "signature"),
    [
        ("--quiet", r"\fB\-\-quiet\fR"),
        ("-q, --quiet", r"\fB\-q, \-\-quiet\fR"),
        ("-o, --output DB.h5", r"\fB\-o, \-\-output\fR \fIDB.h5\fR"),
        ("--mode <local|global>", r"\fB\-\-mode\fR \fIlocal|global\fR"),
        ("A <str>", r"\fIA\fR"),
        ("INPUT...", r"\fIINPUT...\fR"),
    ],
)
def test_options_and_what_they_take_are_told_apart(manpages, item, signature):
    assert manpages.signature(item) == signature
