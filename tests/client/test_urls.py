"""Addresses: which are those of servers, what is in them, and what is refused."""

from __future__ import annotations

import pytest

from swsearch.client.urls import is_url, server_url
from swsearch.errors import InputError


@pytest.mark.parametrize(
    ("text", "server", "name"),
    [
        ("http://host:8080/sprot", "http://host:8080", "sprot"),
        ("http://host:8080", "http://host:8080", ""),
        ("http://host:8080/", "http://host:8080", ""),
        ("HTTPS://Host/", "https://host", ""),
        ("https://host:443/a", "https://host", "a"),
        ("https://host:80/a", "https://host:80", "a"),
        ("http://[::1]:8080/sprot", "http://[::1]:8080", "sprot"),
        ("http://lab/tools/swsearch/sprot", "http://lab/tools/swsearch", "sprot"),
        ("http://lab/swsearch/", "http://lab/swsearch", ""),
        ("http://host/my%20db%2F1", "http://host", "my db/1"),
    ],
)
def test_addresses(text: str, server: str, name: str) -> None:
    assert is_url(text)
    found = server_url(text)
    assert (found.server, found.name) == (server, name)
    assert server_url(str(found)) == found


@pytest.mark.parametrize("text", ["sprot.h5", "ftp://host/x", "http:/host", "", "https", "./http://x", None, 3])
def test_what_is_no_address(text: object) -> None:
    assert not is_url(text)


@pytest.mark.parametrize(
    "text",
    [
        *("http://", "http:///x", "http://host:99999/x", "http://host:x/y", "http://host:0/", "http://[::1/x"),
        *(
            "http://host/x?y",
            "http://host/x#y",
            "http://ho st/x",
            "http://host/\n",
            "http://host//x",
            "http://h/../x",
        ),
        *("http://host/a/./b", "ftp://host/x", "http://" + "ü" * 80 + "/x"),
    ],
)
def test_addresses_that_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^url: got .*, expected an address such as http://host:8080/sprot"):
        server_url(text)


def test_a_password_is_refused_and_not_shown() -> None:
    with pytest.raises(InputError, match=r"^url: got a name or password for host, .* SWSEARCH_TOKEN$") as caught:
        server_url("http://me:secret@host/sprot")
    assert "secret" not in str(caught.value)
