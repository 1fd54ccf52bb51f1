"""What pages take from the code and the checkout's own pages when the site is built, so that they cannot differ.

A line ``<!-- generated: NAME -->`` of a page becomes what the function of that name in `PARTS` returns, as Markdown.
tests/docs/test_docs.py calls the same functions.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
"""The checkout."""

PLACE = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
"""Where a part goes."""


class UndocumentedError(ValueError):
    """Something that users meet has no description."""


def readme() -> str:
    """Return the README, which is the site's first page."""
    return page_of_the_checkout("README.md")


def contributing() -> str:
    """Return CONTRIBUTING.md."""
    return page_of_the_checkout("CONTRIBUTING.md")


def page_of_the_checkout(name: str) -> str:
    """Return a page that lies in the checkout's root, with its links as a page in ``docs`` has them."""
    text = (ROOT / name).read_text(encoding="utf-8")
    text = text.replace("](CONTRIBUTING.md", "](contributing.md").replace("](README.md", "](index.md")
    text = re.sub(r"\]\((?!\w+:|#|docs/|contributing\.md|index\.md)", "](../", text)
    # what is a page, but none of the site's, is a file to be had, without a place in it
    text = re.sub(r"\[([^]]+)\]\((\.\./[^)#]+\.md)(?:#[^)]*)?\)", r"{download}`\1 <\2>`", text)
    return text.replace("](docs/", "](")


def commands() -> str:
    """Describe every command and option: what ``typer utils docs`` prints, below the page's own heading.

    Raises
    ------
    UndocumentedError
        If a command, an argument or an option has no help.
    """
    made = typer_markdown()
    # lists of subcommands, whose help typer cuts short, and which follow in full
    made = re.sub(r"\*\*Commands\*\*:\n\n(?:\* .*\n)+\n?", "", made)
    made = re.sub(r"\[default: \((.*)\)\]", r"[default: \1]", made)
    made = re.sub(
        r"(`[^`]*`)|(?<![\w-])(--[a-z][a-z-]*)", lambda m: m[1] or f"`{m[2]}`", made
    )  # options in help texts
    return made.removeprefix("# `swsearch`\n").strip()


def typer_markdown() -> str:
    """Return what ``typer utils docs`` prints of all commands.

    Raises
    ------
    UndocumentedError
        If a command, an argument or an option has no help.
    """
    made = subprocess.run(
        [sys.executable, "-m", "typer", "swsearch.cli.main", "utils", "docs", "--name", "swsearch"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    check_commands(made)
    return made


def check_commands(markdown: str) -> None:
    """Raise `UndocumentedError` where typer's Markdown describes nothing."""
    bare = []
    for part in re.split(r"^#+ (?=`)", markdown, flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        if text.lstrip().startswith("**Usage**"):
            bare.append(name.strip("`"))
        for item in re.findall(r"^\* `([^`]+)`(?::\s*(?:\[.*\])?)?\s*$", text, re.MULTILINE):
            bare.append(f"{name.strip('`')} {item}")
    if bare:
        raise UndocumentedError(f"no help for {'; '.join(bare)}: expected help= in its declaration, or a docstring")


def formats() -> str:
    """List the formats of ``swsearch search``: names and description."""
    from swsearch.report import OUTPUT_FORMATS

    rows = [(", ".join(f"`{name}`" for name in (each.key, *each.names)), each.description) for each in OUTPUT_FORMATS]
    return table(("`--outfmt`", "what"), rows)


def options() -> str:
    """List the options of a search by their names in every interface."""
    from swsearch.options.row import Interface, rows_of
    from swsearch.pipeline.table.search import SearchTable

    rows = [
        (
            f"`{row.name}`",
            f"`{row.flag}`" if Interface.COMMAND in row.interfaces else "",
            " ".join(f"`-{name.replace('-', '_')}`" for name in row.blast.split()),
            f"`{row.url}`" if row.url else "",
            row.python or row.help,
        )
        for row in rows_of(SearchTable).values()
        if row.interfaces & (Interface.PYTHON | Interface.SERVER)
    ]
    return table(("Python, JSON, form", "command line", "BLAST", "BLAST's URL API", "meaning"), rows)


def columns() -> str:
    """List every column of a table, with the name that comment lines give it."""
    from swsearch.report.tabular import COLUMNS, STANDARD

    rows = [
        (f"`{column.name}`", column.title, "yes" if column.name in STANDARD else "", alignment(column))
        for column in COLUMNS.values()
    ]
    return table(("column", "blastp's name for it", "in `std`", "takes an alignment"), rows)


def alignment(column: Any) -> str:
    """Say whether a column's hit must be aligned."""
    return "yes" if column.needs_alignment else ""


def statistics() -> str:
    """List the gap costs with statistics, by matrix."""
    from swsearch.statistics.karlin_altschul import supported_gap_costs, supported_matrices

    rows = [
        (name, ", ".join(f"{gap_open}/{extend}" for gap_open, extend in supported_gap_costs(name)))
        for name in supported_matrices()
    ]
    return table(("matrix", "open/extend"), rows)


def matrices() -> str:
    """List the matrices that are shipped, with the gap costs that each has by default, and the presets."""
    from swsearch.matrices import BLASTP_MATRICES, GAP_COSTS, PRESET_MATRICES

    presets = {matrix: f"`{preset}`" for preset, matrix in PRESET_MATRICES.items()}
    rows = [
        (name, f"{gap_open}/{extend}", "yes" if name in BLASTP_MATRICES else "no", presets.get(name, ""))
        for name, (gap_open, extend) in GAP_COSTS.items()
    ]
    return table(("matrix", "open/extend", "one of blastp's", "preset"), rows)


def exit_codes() -> str:
    """List the exit codes of the errors, with what raises them."""
    from swsearch import errors

    found: dict[int, list[str]] = {}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.SwsearchError):
            found.setdefault(kind.exit_code, []).append(f"`{name}`: {first_line(kind)}")
    return table(("exit code", "error in Python"), [(str(code), "<br>".join(found[code])) for code in sorted(found)])


def blast_words() -> str:
    """List the parameters of BLAST's URL API: with which commands each goes, and what becomes of it."""
    from swsearch.server.blast_parameters import PARAMETERS

    before = {"used": "", "none": "no effect: ", "refused": "refused: "}
    names: dict[tuple[str, str], list[str]] = {}
    for word in PARAMETERS.values():
        names.setdefault((", ".join(word.commands), before[word.effect] + word.meaning), []).append(word.name)
    rows = [(", ".join(f"`{name}`" for name in found), commands, said) for (commands, said), found in names.items()]
    return table(("parameter", "with", "what it does here"), rows)


def blast_formats() -> str:
    """List the reports of BLAST's URL API."""
    from swsearch.server.blast import BLAST_FORMATS

    rows = [(f"`{name}`", f'`--outfmt "{each.outfmt}"`', each.what) for name, each in BLAST_FORMATS.items()]
    return table(("`FORMAT_TYPE`", "as `swsearch search`", "what"), rows)


def http_api() -> str:
    """List the paths of the HTTP API."""
    from swsearch.server.api import router

    rows = [
        (
            method,
            f"`{route.path.removeprefix(router.prefix)}`",
            " ".join(f"{route.summary}. {route.description}".split()),
        )
        for route in router.routes
        if route.include_in_schema
        for method in route.methods
    ]
    return table(("method", f"below `{router.prefix}`", "what"), rows)


def http_problems() -> str:
    """List the codes of problems with their statuses."""
    from swsearch.server.errors import PROBLEM_KINDS

    rows = [(f"`{code}`", str(kind.status), kind.description) for code, kind in PROBLEM_KINDS.items()]
    return table(("code", "status", "what"), rows)


def first_line(thing: Any) -> str:
    """Return the first line of a docstring.

    Raises
    ------
    UndocumentedError
        If there is none.
    """
    text = (thing.__doc__ or "").strip().partition("\n")[0].strip()
    if not text:
        raise UndocumentedError(f"{thing.__qualname__} has no docstring")
    return text


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Format a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


PARTS = {
    "readme": readme,
    "contributing": contributing,
    "commands": commands,
    "formats": formats,
    "options": options,
    "columns": columns,
    "statistics": statistics,
    "matrices": matrices,
    "exit_codes": exit_codes,
    "http_api": http_api,
    "http_problems": http_problems,
    "blast_words": blast_words,
    "blast_formats": blast_formats,
}
"""Every part, by its name."""


def fill(text: str) -> str:
    """Fill the places of a page."""
    return PLACE.sub(lambda place: PARTS[place[1]](), text)


def _on_source_read(_app: Any, name: str, source: list[str]) -> None:
    from sphinx.errors import SphinxError

    try:
        source[0] = fill(source[0])
    except UndocumentedError as error:
        raise SphinxError(f"{name}: {error}") from error


def _outdated(app: Any, env: Any, *_changes: Any) -> list[str]:
    """Return the pages with parts, which are made anew by every build: what they come from is no page."""
    return [name for name in env.found_docs if PLACE.search(Path(env.doc2path(name)).read_text(encoding="utf-8"))]


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx of it."""
    app.connect("source-read", _on_source_read)
    app.connect("env-get-outdated", _outdated)
    return {"parallel_read_safe": True}
