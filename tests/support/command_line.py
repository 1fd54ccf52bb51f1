"""The command line in a process of its own, and how its failures look."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support import forking

SWSEARCH = [sys.executable, "-m", "swsearch"]
WITHOUT_CUDA = (
    "import sys; sys.modules['pycuda'] = sys.modules['cuda.bindings'] = None; "
    "from swsearch.__main__ import main; main()"
)

FORKED = False
"""Take processes that have imported everything before, for every command; conftest.py decides.

Otherwise only for a command of which each word, option and ending of a file was in a command before: imports take
most of a command's time, and what those words import was seen to work.
"""

_words_met: set[str] = set()


def _has_new(words):
    """Tell whether a command has a word, an option or an ending of a file that none had before."""
    kinds = {word.partition("=")[0] if re.match("-|[a-z]+$", word) else Path(word).suffix for word in words}
    is_new = not kinds <= _words_met
    _words_met.update(kinds)
    return is_new


def run(*arguments, text=True, closed=(), full=(), **options):
    """Run the command line to its end; options are those of `subprocess.run`, output is captured.

    Of the descriptors 0, 1 and 2 some may be closed, and some be a device that is full.
    """
    words = list(map(str, arguments))
    if forking.can(options) and (FORKED or not _has_new(words)):
        return forking.run(words, text=text, closed=closed, full=full, **options)
    redirected = " ".join([f"{number}>&-" for number in closed] + [f"{number}>/dev/full" for number in full])
    line = ["bash", "-c", f'exec "$@" {redirected}', "bash"] if redirected else []
    return subprocess.run([*line, *SWSEARCH, *words], capture_output=True, text=text, check=False, **options)


def fails(done, code, *parts):
    """Check the exit code and that one line of error says each part."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for part in parts:
        assert part in re.sub(r"[\s│]+", " ", done.stderr), done.stderr


PARSERS = re.compile(
    "Input should be|Value error|Invalid value|No such [oc]|Missing|requires an arg|unexpected|Traceback|Usage:|╭"
)
"""Words of typer, click and pydantic."""


def refusal(ended, code=1):
    """Check that a command in this process ended with an exit code and one sentence, and return the sentence."""
    found, out, err = ended
    lines = [line for line in err.splitlines() if "warning" not in line and " is taken as " not in line]
    assert (found, out, len(lines)) == (code, "", 1), ended
    assert lines[0].startswith("swsearch: error: "), ended
    assert not PARSERS.search(err), err
    assert len(err) < 400, err
    return lines[0].removeprefix("swsearch: error: ")
