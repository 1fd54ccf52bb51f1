"""The command line in a process of its own, and how its failures look."""

import re
import subprocess
import sys

SWSEARCH = [sys.executable, "-m", "swsearch"]


def run(*arguments, **options):
    return subprocess.run([*SWSEARCH, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def fails(done, code, *parts):
    """Check the exit code and that one line of error says each part."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for part in parts:
        assert part in re.sub(r"[\s│]+", " ", done.stderr), done.stderr


WITHOUT_PYCUDA = "import sys; sys.modules['pycuda'] = None; from swsearch.__main__ import main; main()"
