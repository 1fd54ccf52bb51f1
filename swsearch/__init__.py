"""Exact protein database search: Smith-Waterman with E-values and alignments.

>>> import swsearch
>>> db = swsearch.Database.from_records([("a", "MKVLAAGIVG"), ("b", "WWPPWWPP")])
>>> [(hit.subject_id, hit.score) for hit in next(swsearch.search("MKVLAAG", db, evalue=1000)).hits]
[('a', 32)]
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swsearch.api import align, score, search, write
    from swsearch.db import Database
    from swsearch.errors import SwsearchError
    from swsearch.results import Hit, SearchResult
    from swsearch.scoring import Scoring, dna_matrix

__all__ = [
    "Database",
    "Hit",
    "Scoring",
    "SearchResult",
    "SwsearchError",
    "align",
    "dna_matrix",
    "score",
    "search",
    "write",
]

_HOMES = {
    "Database": "swsearch.db",
    "Hit": "swsearch.results",
    "Scoring": "swsearch.scoring",
    "SearchResult": "swsearch.results",
    "SwsearchError": "swsearch.errors",
    "align": "swsearch.api",
    "dna_matrix": "swsearch.scoring",
    "score": "swsearch.api",
    "search": "swsearch.api",
    "write": "swsearch.api",
}

_CHECKOUT = Path(__file__).resolve().parent.parent
if (_CHECKOUT / "setup.cfg").is_file():
    # in a checkout and in an editable install, swsearch.db is the folder db/ beside this package
    __path__.append(str(_CHECKOUT))


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``swsearch --help`` needs no numpy."""
    if name == "__version__":
        from swsearch.version import version

        return version()
    if name not in _HOMES:
        raise AttributeError(f"module 'swsearch' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
