"""The whole command line as one object, for documentation and tests; a process that runs makes one command of it."""

from __future__ import annotations

from swsearch.cli.commands import application

app = application()
"""Every command."""
