"""FASTA in, sorted interleaved HDF5 out: the database that every engine searches."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swsearch.db.append import append_database
    from swsearch.db.build import build_database
    from swsearch.db.collection import Entry
    from swsearch.db.database import Database
    from swsearch.db.edits import Edited, merge_databases, remove_records
    from swsearch.db.fasta import Record, read_fasta
    from swsearch.db.format import is_database
    from swsearch.db.split import split_database
    from swsearch.db.verify import verify_database
    from swsearch.db.volumes import Volume, write_manifest

__all__ = [
    "Database",
    "Edited",
    "Entry",
    "Record",
    "Volume",
    "append_database",
    "build_database",
    "is_database",
    "merge_databases",
    "read_fasta",
    "remove_records",
    "split_database",
    "verify_database",
    "write_manifest",
]

_HOMES = {
    "Database": "database",
    "Edited": "edits",
    "Entry": "collection",
    "Record": "fasta",
    "Volume": "volumes",
    "append_database": "append",
    "build_database": "build",
    "is_database": "format",
    "merge_databases": "edits",
    "read_fasta": "fasta",
    "remove_records": "edits",
    "split_database": "split",
    "verify_database": "verify",
    "write_manifest": "volumes",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a search reads a database, and need not know how to change one."""
    if name not in _HOMES:
        raise AttributeError(f"module 'swsearch.db' has no attribute {name!r}")
    return getattr(import_module(f"swsearch.db.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
