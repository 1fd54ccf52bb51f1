"""Current interfaces as text: help of commands, HTTP API, Python API, page, names and saved options."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer.main

import swsearch
from support.web_pages import Visitor, site
from swsearch.cli.main import app
from swsearch.server.app import create_app
from swsearch.server.jobs import Jobs
from swsearch.server.settings import ServerSettings
from swsearch.version import version

Run = Callable[..., tuple[int, str, str]]
"""Runs words of a command line in a folder of its own; returns exit code, stdout and stderr."""

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"

SEARCHES = {
    "default": "",
    "proteins": "--preset sensitive --gap-open 12 --gap-extend 2 --query-loc 2-60 --query-mask lower "
    "--subject-mask none --evalue 1e-3 --max-hits 7 --sort score --dbsize 5M --statistics fitted --max-alignments 3 "
    "--min-score 20 --min-identity 20 --min-query-coverage 30 --min-subject-coverage 40 --include-ids ids.txt "
    "--exclude-ids others.txt --ignore-missing-ids",
    "structure": "--alphabet tea --gap-extend 2",
    "ends": "--mode semiglobal --matrix BLOSUM80 --statistics none --max-hits 3",
    "iterations": "--task short --evalue 5 --iterations 2 --inclusion-evalue 1e-4 --inclusion-coverage 10 "
    "--max-included 50",
    "translated": "--translate --genetic-code 11 --strand plus --frame-shift 15 --matrix BLOSUM80 --allow-dna",
}
"""Options of the searches whose saved options are kept; they find little, which takes little time."""

LOOKS = {"id", "class", "for", "rows", "spellcheck", "autocomplete", "autocapitalize", "aria-describedby"}
"""Attributes of the page's elements that say nothing of what may be typed."""


def help_pages(run: Run) -> Iterator[tuple[str, str]]:
    """Yield every command's name, with a dash between its words, and what its --help says."""

    def pages(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        code, out, err = run(*path, "--help")
        assert (code, err) == (0, "")
        yield "-".join(path) or "swsearch", "\n".join(line.rstrip() for line in out.strip("\n").splitlines()) + "\n"
        for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
            yield from pages(command.get_command(None, name), (*path, name))

    return pages(typer.main.get_command(app), ())


def substance(page: str) -> str:
    """Return the words of a page of help that all versions of typer write: no usage, frames, types and brackets."""
    lines = [line for line in page.splitlines() if not line.startswith((" Usage", "╭", "╰"))]
    words = " ".join(re.sub(r"^│ [ *] +\w\S*(  +\S+)?(?=  )", "", line) for line in lines).split()
    return "\n".join(sorted(each for each in words if each != "TEXT" and not re.search(r"[][<>|{}│*]", each)))


def http_api() -> str:
    """Return the description of the HTTP API."""
    stated = create_app(Jobs(ServerSettings((), Path()), {}, None)).openapi()  # type: ignore[arg-type]
    stated["info"]["version"] = "VERSION"
    return json.dumps(stated, indent=2, ensure_ascii=False) + "\n"


def signatures() -> str:
    """Return all that `swsearch` exports, with a parameter on each line."""
    lines: list[str] = []
    for name in swsearch.__all__:
        lines += _signature(name, public := getattr(swsearch, name))
        bases = [each for each in getattr(public, "__mro__", ()) if each.__module__.startswith("swsearch")]
        for member in sorted({each for base in bases for each in vars(base) if each[0] != "_"}):
            lines += _signature(f"{name}.{member}", getattr(public, member))
    return "\n".join(lines) + "\n"


def _signature(name: str, found: Any) -> list[str]:
    if not callable(found):
        return [f"{name}: {'property' if isinstance(found, property) else 'value'}"]
    stated = inspect.signature(found)
    returned = "" if stated.return_annotation is stated.empty else f" -> {stated.return_annotation}"
    kinds = {each: f"  [{each.kind.description}]" for each in stated.parameters.values()}
    return [f"{name}{returned}", *(f"    {each}{kind}" for each, kind in kinds.items())]


def form() -> str:
    """Return the form of the server's page, in its order: titles, labels, fields, choices and help."""
    lines = []
    with TemporaryDirectory() as folder, site(Path(folder)) as served:
        elements = Visitor(served.url).page("/").one("form", id="search").inside
    for each in elements:
        text = re.sub(r"built \S+", "built DATE", " ".join(each.text.split()))
        given = " ".join(f"{key}={value!r}" for key, value in each.attributes.items() if key not in LOOKS)
        if each.name in ("h2", "summary"):
            lines.append(f"\n== {text}")
        elif each.name in ("input", "select", "textarea"):
            lines.append(f"    {each.name} {given}")
        elif each.name in ("label", "option", "button", "p"):
            lines.append(f"{'      ' * (each.name == 'option')}{each.name}: {text}{f'  ({given})' if given else ''}")
    return "\n".join(lines).lstrip() + "\n"


def names(run: Run, kept: str) -> str:
    """Return the words before each arrow of what was kept, with what they make of a search's options now."""
    Path("q.fasta").write_text(">one\nMKVLAAGIVGWWHHKDEFRTYPCNQS\n")
    Path("s.fasta").write_text(">one\nMKVLAAGIVGWWHHKDEFRTYPCNQS\n>two\nMKVLAAGIVGWHHKDEFRTYPCNQS\n")
    Path("ids.txt").write_text("two\n")
    usual, lines = _answer(run, []), []
    for typed in (line.partition(" -> ")[0] for line in kept.splitlines()):
        found = _answer(run, shlex.split(typed))
        said = "; ".join(each for each in found if each not in usual) or "nothing in the options or the output"
        lines.append(f"{typed} -> {said}")
    return "\n".join(lines) + "\n"


def _answer(run: Run, words: list[str]) -> list[str]:
    before = {*Path().iterdir(), Path("used.toml")}
    files = [] if any("q.fasta" in each for each in words) else ["q.fasta", "s.fasta"]
    code, out, err = run("search", *files, "--engine", "cpu", "--quiet", "--save-config", "used.toml", *words)
    made = sorted(set(Path().iterdir()) - before)
    for each in made:
        each.unlink()
    if code:
        return [" ".join(err.split())]
    text = "".join(out.split()[:1]) or "nothing"
    return [*Path("used.toml").read_text().splitlines(), *(f"writes {each}" for each in made), f"prints {text}"]


def saved_options(run: Run) -> str:
    """Return what searches say of their options: saved ones, those in a report, and a checkpoint's manifest."""
    Path("ids.txt").write_text("P05093\nP62632\n")
    Path("others.txt").write_text("P62632\n")
    Path("dna.fasta").write_text(">dna\nATGGCCCTGTGGATGCGCCTCCTGCCCCTGCTGGCGCTGCTGGCCCTCTGGGGACCTGACCCAGCC\n")
    parts = []
    for title, words in SEARCHES.items():
        queries = "dna.fasta" if "--translate" in words else DATA / "queries.fasta"
        given = [queries, DATA / "swissprot_sample.fasta.gz", "--engine", "cpu", "--quiet", *words.split()]
        kept = [] if "--iterations" in words else ["--checkpoint", title]  # one is not possible with the other
        outputs = ["-o", f"{title}.jsonl", "--save-config", "-", *kept]
        code, out, err = run("search", *given, *outputs)
        assert code == 0, err
        report = json.loads(Path(f"{title}.jsonl").read_text().partition("\n")[0])["options"]
        parts += [f"== {title}: {words}", out, f"-- report\n{json.dumps(report, indent=2)}\n"]
        if kept:
            parts.append(f"-- checkpoint\n{Path(title, 'manifest.json').read_text()}\n")
    return (
        "\n".join(parts).replace(f"swsearch {version()}", "swsearch VERSION").replace(f'"{version()}"', '"VERSION"')
    )
