"""Exact protein database search: Smith-Waterman with E-values and alignments.

>>> import swsearch
>>> db = swsearch.Database.from_records([("a", "MKVLAAGIVG"), ("b", "WWPPWWPP")])
>>> [(hit.subject_id, hit.score) for hit in next(swsearch.search("MKVLAAG", db, evalue=1000)).hits]
[('a', 32)]
"""

import os

TYPE_CHECKING = False
"""Substitute for `typing.TYPE_CHECKING`. Imports stay few here, because Ctrl-C has no handler yet."""

if TYPE_CHECKING:
    from typing import Any

    from swsearch.api import Searcher, align, score, search, write
    from swsearch.client.client import Client
    from swsearch.db import Database
    from swsearch.errors import SwsearchError
    from swsearch.profiles.profile import Profile
    from swsearch.results import Hit, SearchResult
    from swsearch.scoring import Scoring, dna_matrix

__all__ = [
    "Client",
    "Database",
    "Hit",
    "Profile",
    "Scoring",
    "SearchResult",
    "Searcher",
    "SwsearchError",
    "align",
    "dna_matrix",
    "score",
    "search",
    "write",
]

_HOMES = {
    "Client": "swsearch.client.client",
    "Database": "swsearch.db",
    "Hit": "swsearch.results",
    "Profile": "swsearch.profiles.profile",
    "Scoring": "swsearch.scoring",
    "SearchResult": "swsearch.results",
    "Searcher": "swsearch.api",
    "SwsearchError": "swsearch.errors",
    "align": "swsearch.api",
    "dna_matrix": "swsearch.scoring",
    "score": "swsearch.api",
    "search": "swsearch.api",
    "write": "swsearch.api",
}

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
if os.path.isfile(os.path.join(_CHECKOUT, "setup.cfg")):  # noqa: PTH113, PTH118
    # in a checkout and in an editable install, swsearch.db is the folder db/ beside this package
    __path__.append(_CHECKOUT)


def __getattr__(name: str) -> "Any":
    """Import a public name when it is first used, so that ``swsearch --help`` needs no numpy."""
    if name == "__version__":
        from swsearch.version import version

        return version()
    if name not in _HOMES:
        raise AttributeError(f"module 'swsearch' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
