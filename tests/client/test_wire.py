"""Options of a search over the network: encoding as JSON, decoding, and rejected requests."""

from __future__ import annotations

import hashlib

import pytest

from swsearch.client.search_request import SearchRequest
from swsearch.errors import InputError, SequenceError
from swsearch.run_info import Checksum

FASTA = b">q some query\nMKVLAAGIVGllaq\n"


def test_reports_have_the_checksum_of_what_was_sent_and_never_that_of_a_file() -> None:
    request = SearchRequest("db", FASTA, origin={"queries": "/etc/passwd"})
    assert request.run_origin.checksums == (Checksum("queries", "/etc/passwd", hashlib.sha256(FASTA).hexdigest()),)
    told = SearchRequest("db", FASTA, origin={"queries": "q.fa.gz", "sha256": "a" * 64})
    of_database = Checksum("database", "db.h5", "b" * 64)
    assert told.origin_with([of_database]).checksums == (Checksum("queries", "q.fa.gz", "a" * 64), of_database)
    assert SearchRequest("db", FASTA, origin={"queries": "-"}).run_origin.checksums == ()
    with pytest.raises(InputError, match=r"^origin.sha256: got 'AB', expected 64 hexadecimal digits"):
        SearchRequest("db", FASTA, origin={"sha256": "AB"})


@pytest.mark.parametrize(("origin", "called"), [({}, "queries"), ({"queries": "mine.fa"}, "mine.fa")])
def test_messages_call_queries_what_whoever_asks_does(origin: dict[str, str], called: str) -> None:
    request = SearchRequest("db", b"MKVLAA\n", origin=origin)
    with pytest.raises(SequenceError, match=f"^{called}: line 1: got 'M' before the first record"):
        request.read_queries()
