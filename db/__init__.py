"""FASTA in, sorted interleaved HDF5 out: the database that every engine searches."""

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
