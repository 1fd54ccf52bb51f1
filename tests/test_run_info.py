"""Sources of a search in a report: checksums that are read, and checksums that are known beforehand."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import swsearch
from swsearch.backends.local import LocalBackend
from swsearch.db import build_database
from swsearch.engines.reference import ReferenceEngine
from swsearch.inputs import read_queries
from swsearch.pipeline.options import SearchOptions
from swsearch.pipeline.search_results import SearchResults
from swsearch.run_info import Checksum, Origin, checksums, database_checksums

DIGEST = "0" * 64


def test_checksums_that_are_known_stand_in_reports_and_no_file_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not yours")
    known = (Checksum("queries", str(secret), DIGEST),)
    run = next(swsearch.search("MKVLAAGIVG", ["MKVLAAGIVG"], engine="reference")).run
    assert run is not None
    sources = ({"path": "a.fasta", "sha256": "1" * 64},)
    asked = replace(run, queries=str(secret), given_checksums=known, database_sources=sources)
    assert asked.with_checksums().checksums == (*known, Checksum("built from", "a.fasta", "1" * 64))
    read = replace(asked, given_checksums=None).with_checksums().checksums
    assert read[0].sha256 == hashlib.sha256(b"not yours").hexdigest()
    assert asked.is_same_search(replace(asked, given_checksums=()))


def test_a_database_under_another_name_keeps_its_checksum(tmp_path: Path) -> None:
    fasta, path = tmp_path / "db.fasta", tmp_path / "db.h5"
    fasta.write_text(">a\nMKVLAAGIVGLLLAQWERTY\n")
    build_database([str(fasta)], path)
    (own,) = checksums("", str(path), ())
    named = database_checksums(str(path), path.name)
    assert named == (Checksum("database", "db.h5", own.sha256),)
    with swsearch.Database.open(path) as database, ReferenceEngine() as engine:
        database.name = path.name
        queries, origin = read_queries([("q", "MKVLAAGIVG")]), Origin("/etc/passwd", checksums=named)
        backend_of = partial(LocalBackend, engine=engine)
        (result,) = SearchResults(queries, database, SearchOptions(), backend_of, origin=origin)
    run = result.run
    assert run is not None
    assert (run.database_name, result.database_name) == ("db.h5", "db.h5")
    assert run.with_checksums().checksums[0] == named[0]
