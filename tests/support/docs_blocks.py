"""The fenced blocks of the documentation's pages: found, run in order, and their output compared.

``sh`` and ``python`` blocks are run, all of a page in one folder, which holds the checkout's ``examples``; the
Python blocks of a page share their names. A ``text`` block right after one is what it prints on stdout; ``...`` in
it stands for anything. After the language may stand ``{not-run: REASON}``, or notes separated by blanks:
``exit=N``, where the exit code is N and the text is what stderr has, and ``needs=PROGRAM,PROGRAM``, which is run only
where these are installed.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from conftest import ROOT

DOCS = ROOT / "docs"

PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
"""Every page."""

FENCE = re.compile(r"^```(\w+)(?: \{([^}\n]*)\})?\n(.*?)^```$\n*", re.MULTILINE | re.DOTALL)

LANGUAGES = {"sh", "python", "text", "json"}
"""Languages of blocks; the last two are shown and not run."""


@dataclass
class Block:
    """A fenced block.

    Parameters
    ----------
    line : int
        Where in the page it stands, counted from 1.
    language, note, text : str
        ``sh``, what stands in braces after it, and what the block holds.
    output : str or None
        The text block right after it.
    output_at : int
        Where in the page's text the output begins.
    """

    line: int
    language: str
    note: str
    text: str
    output: str | None = None
    output_at: int = 0

    @property
    def is_run(self) -> bool:
        return self.language in ("sh", "python") and not self.note.startswith("not-run")

    @property
    def exit_code(self) -> int:
        return int(self._noted("exit") or 0)

    @property
    def needs(self) -> list[str]:
        return [program for program in self._noted("needs").split(",") if program]

    def _noted(self, name: str) -> str:
        found = re.search(rf"(?:^| ){name}=(\S+)", self.note)
        return found[1] if found else ""


def blocks(text: str) -> list[Block]:
    """Find the blocks of a page."""
    found: list[Block] = []
    end = -1
    for match in FENCE.finditer(text):
        block = Block(text.count("\n", 0, match.start()) + 1, match[1], match[2] or "", match[3])
        if block.language == "text" and found and match.start() == end and found[-1].is_run:
            found[-1].output, found[-1].output_at = block.text, match.start(3)
        else:
            found.append(block)
        end = match.end()
    return found


def matches(shown: str, printed: str) -> bool:
    """Compare what a page shows with what was printed; blanks at line ends do not count."""
    shown, printed = (re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip("\n") for text in (shown, printed))
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def renewed(shown: str, printed: str) -> str:
    """Return what a page shows of what is printed now: lines that are whole, where ``...`` stands for others."""
    shown_lines, lines = shown.splitlines(), printed.splitlines()
    if "..." not in shown:
        return printed.rstrip("\n") + "\n"
    cut = shown_lines.index("...")
    last = len(shown_lines) - cut - 1
    return "\n".join([*lines[:cut], "...", *lines[len(lines) - last :]]) + "\n"


class Runner:
    """Runs the blocks of a page.

    Parameters
    ----------
    folder : Path
        Empty; files that the page makes end up here.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[str, object] = {"__name__": "__main__"}
        (folder / "examples").symlink_to(ROOT / "examples")
        programs = folder / ".bin"
        programs.mkdir()
        jackhmmer = "-c 'from swsearch.__main__ import jackhmmer; jackhmmer()'"
        for name, arguments in (("swsearch", "-m swsearch"), ("swsearch-jackhmmer", jackhmmer), ("python", "")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(paths),
            "COLUMNS": "80",
        }

    def run(self, block: Block) -> str:
        """Run a block; return what it printed, on stderr where it is meant to fail."""
        if block.language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.chdir(self.folder):
                exec(compile(block.text, "<block>", "exec", dont_inherit=True), self._names)
            return printed.getvalue()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self._environment,
            check=False,
        )
        assert done.returncode == block.exit_code, done.stderr
        return done.stderr if block.exit_code else done.stdout
