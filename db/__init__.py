"""The database: FASTA in, HDF5 with sorted, interleaved residues out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swsearch.db.building import build_database as build_database
    from swsearch.db.convert import convert_database as convert_database
    from swsearch.db.database import Database as Database
    from swsearch.db.database_files import Volume as Volume
    from swsearch.db.database_files import is_database as is_database
    from swsearch.db.editing import EditResult as EditResult
    from swsearch.db.editing import append_database as append_database
    from swsearch.db.editing import merge_databases as merge_databases
    from swsearch.db.editing import remove_records as remove_records
    from swsearch.db.editing import split_database as split_database
    from swsearch.db.editing import write_manifest as write_manifest
    from swsearch.db.fasta import Record as Record
    from swsearch.db.records import read_fasta as read_fasta
    from swsearch.db.sequence_protocol import Entry as Entry
    from swsearch.db.verify import verify_database as verify_database

_HOMES = {
    "Database": "database",
    "EditResult": "editing",
    "Entry": "sequence_protocol",
    "Record": "fasta",
    "Volume": "database_files",
    "append_database": "editing",
    "build_database": "building",
    "convert_database": "convert",
    "is_database": "database_files",
    "merge_databases": "editing",
    "read_fasta": "records",
    "remove_records": "editing",
    "split_database": "editing",
    "verify_database": "verify",
    "write_manifest": "editing",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a search reads a database, and need not know how to change one."""
    if name not in _HOMES:
        raise AttributeError(f"module 'swsearch.db' has no attribute {name!r}")
    return getattr(import_module(f"swsearch.db.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
