"""What a report says of where a search came from: checksums that are read, and such as are known beforehand."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import swsearch
from swsearch.run_info import Checksum

DIGEST = "0" * 64


def test_checksums_that_are_known_stand_in_reports_and_no_file_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not yours")
    known = (Checksum("queries", str(secret), DIGEST),)
    run = next(swsearch.search("MKVLAAGIVG", ["MKVLAAGIVG"], engine="reference")).run
    assert run is not None
    sources = ({"path": "a.fasta", "sha256": "1" * 64},)
    asked = replace(run, queries=str(secret), known_checksums=known, database_sources=sources)
    assert asked.with_checksums().checksums == (*known, Checksum("built from", "a.fasta", "1" * 64))
    read = replace(asked, known_checksums=None).with_checksums().checksums
    assert read[0].sha256 == hashlib.sha256(b"not yours").hexdigest()
    assert asked.is_of(replace(asked, known_checksums=()))
