"""Make the manual pages from the commands: docs/man/swsearch.1, and one for each command, which wheels install.

Commands and options come from the code, as docs/reference/commands.md has them; the examples are the README's, and
what environment variables and exit codes mean is taken from the pages of the reference. tests/packaging compares the
pages with what this would write.

Needs: swsearch with the libraries that setup.cfg names; groff to read the pages (man ./docs/man/swsearch.1).
Run:   python packaging/manpages.py [--check]
"""

from __future__ import annotations

import argparse
import html
import re
import sys
from configparser import ConfigParser
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

FOLDER = ROOT / "docs" / "man"

NAME = "swsearch"

HEADING = re.compile(r"^#+ `([^`]+)`\n", re.MULTILINE)
"""Where the description of a command begins."""

PART = re.compile(r"^\*\*(Usage|Arguments|Options|Commands)\*\*:\n", re.MULTILINE)

ITEM = re.compile(r"^\* `([^`]+)`:?[ ]*(.*(?:\n(?!\* |\n).*)*)", re.MULTILINE)


@dataclass
class Command:
    """A command, as typer describes it.

    Parameters
    ----------
    name : str
        With the words before it, such as ``swsearch db build``.
    about : list of str
        Paragraphs; the first is what it does.
    usage : str
        Without the ``$``.
    items : dict
        Pairs of name and description, by ``Arguments``, ``Options`` and ``Commands``.
    """

    name: str
    about: list[str]
    usage: str
    items: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def page(self) -> str:
        """The name of its page, without the section."""
        return self.name.replace(" ", "-")

    @property
    def parent(self) -> str:
        """The name of the command that it belongs to."""
        return self.name.rpartition(" ")[0]


def main() -> int:
    """Write the pages, or say which are not what would be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is out of date")
    asked = parser.parse_args()
    made = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.1")}
    stale = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    if asked.check:
        for name in stale:
            print(
                f"docs/man/{name}: not what the commands say; python packaging/manpages.py writes it", file=sys.stderr
            )
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        if name in made:
            (FOLDER / name).write_text(made[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    print(f"{len(made)} pages in {FOLDER.relative_to(ROOT)}, {len(stale)} of them changed")
    return 0


def pages() -> dict[str, str]:
    """Return every page by its file's name."""
    commands = read_commands(described())
    return {f"{each.page}.1": page_of(each, commands) for each in commands}


def described() -> str:
    """Return all commands as Markdown, as the documentation takes them."""
    sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "extensions")]
    import generated

    return str(generated.typer_markdown())


def read_commands(markdown: str) -> list[Command]:
    """Read what typer wrote."""
    pieces = HEADING.split(markdown)[1:]
    return [read_command(name, text) for name, text in zip(pieces[::2], pieces[1::2], strict=True)]


def read_command(name: str, markdown: str) -> Command:
    """Read the description of one command."""
    about, *pieces = PART.split(markdown)
    parts = dict(zip(pieces[::2], pieces[1::2], strict=True))
    usage = re.search(r"^\$ (.*)$", parts.pop("Usage"), re.MULTILINE)
    assert usage is not None, f"{name}: typer states no usage"
    return Command(
        name,
        [" ".join(paragraph.split()) for paragraph in plain(about).strip().split("\n\n")],
        re.sub(r"\{([^}]*?)(?:\.\.\.)?\}", r"\1", plain(usage[1])).replace("[[", "[").replace("]]", "]"),
        {part: [(plain(item), " ".join(plain(what).split())) for item, what in ITEM.findall(text)]
         for part, text in parts.items()},
    )  # fmt: skip


def plain(text: str) -> str:
    """Undo what typer does to text for Markdown."""
    text = re.sub(r"\[default: \((.*)\)\]", r"[default: \1]", html.unescape(text))
    return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text).replace("`", "")


def page_of(command: Command, commands: list[Command]) -> str:
    """Write the page of a command."""
    lines = [f'.TH "{command.page.upper()}" 1 "" "{NAME} {version()}" "User commands"', ".SH NAME"]
    lines += [
        escape(f"{command.page} - {command.about[0].rstrip('.')}"),
        ".SH SYNOPSIS",
        f".B {escape(command.name)}",
    ]
    lines += [escape(command.usage.removeprefix(command.name).strip()), ".SH DESCRIPTION"]
    for paragraph in command.about:
        lines += [".PP", escape(paragraph)]
    for part in ("Arguments", "Options"):
        if command.items.get(part):
            lines.append(f".SH {part.upper()}")
            lines += [line for item, what in command.items[part] for line in tagged(signature(item), what)]
    below = [each for each in commands if each.parent == command.name]
    if below:
        lines.append(".SH COMMANDS")
        lines += [line for each in below for line in tagged(rf"\fB{escape(each.name)}\fR", each.about[0])]
    if command.name == NAME:
        lines += front_matter()
    related = [each for each in commands if command.name in (each.parent, each.name) or each.name == command.parent]
    lines += [".SH SEE ALSO", ", ".join(rf"\fB{escape(each.page)}\fR(1)" for each in related if each is not command)]
    return "\n".join(lines) + "\n"


def signature(item: str) -> str:
    """Set an option in bold and what it takes in italics."""
    names, _, value = item.partition(" <") if " <" in item else item.rpartition(" ")
    if not item.startswith("-"):
        return rf"\fI{escape(item.partition(' <')[0])}\fR"
    if not names or value.startswith("-"):
        names, value = item, ""
    value = value.removesuffix(">")
    shown = rf"\fB{escape(names)}\fR"
    return f"{shown} \\fI{escape(value)}\\fR" if value else shown


def tagged(tag: str, what: str) -> list[str]:
    """Write an item with what it means."""
    return [".TP", tag, escape(what)]


def front_matter() -> list[str]:
    """Write what concerns all commands: examples, variables, exit codes."""
    lines = [".SH EXAMPLES", ".nf"]
    lines += [escape(line) for line in block_of("README.md", "## Use it").splitlines()]
    lines += [".fi", ".SH ENVIRONMENT"]
    for names, what in re.findall(
        r"^(`[^:\n]+)\n: (.+(?:\n  .+)*)", section("commands", "## Environment"), re.MULTILINE
    ):
        lines += tagged(rf"\fB{escape(plain(names))}\fR", " ".join(plain(what).split()))
    lines.append(".SH EXIT STATUS")
    for code, what in re.findall(r"^\| (\d+) \| (.+) \|$", section("exit-codes", "# Exit codes"), re.MULTILINE):
        lines += tagged(rf"\fB{code}\fR", plain(what))
    return lines


def section(page: str, heading: str) -> str:
    """Return what stands below a heading of a page of the reference."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    return text.split(f"{heading}\n", 1)[1].split("\n## ", 1)[0]


def block_of(page: str, heading: str) -> str:
    """Return the first block of shell commands below a heading of a page of the checkout."""
    text = (ROOT / page).read_text(encoding="utf-8").split(f"{heading}\n", 1)[1]
    found = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert found is not None, f"{page}: no commands below {heading}"
    return found[1]


def version() -> str:
    """Return the version that setup.cfg states."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return setup["metadata"]["version"]


def escape(text: str) -> str:
    """Write text so that roff shows it as it is: dashes that can be copied, no line that is taken for a request."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    text = text.replace("^", r"\(ha").replace("~", r"\(ti")
    return r"\&" + text if text.startswith((".", "'")) else text


if __name__ == "__main__":
    sys.exit(main())
