"""Checks that every request passes, and headers that every response has."""

import re

import pytest

from swsearch.server.streaming import disposition

PATHS = ["/api/v1/databases", "/api/v1/nothing", "/api", "/metrics", "/api/v1/openapi.json"]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers_of_safety(served, path):
    headers = served.ask("GET", path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] in ("no-referrer", "same-origin")
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "server" not in headers
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost", 200),
        ("[::1]:8080", 200),
        ("LOCALHOST:1", 200),
        ("10.1.2.3", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example:80", 403),
        ("local host", 403),
    ],
)
def test_a_name_that_is_not_ours_is_refused(served, host, status):
    assert served.get("/ready", Host=host).status == status


def test_a_link_from_elsewhere_may_be_followed_and_nothing_embedded(served):
    assert served.get("/ready", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status == 200
    assert served.get("/ready", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status == 403


def test_the_description_names_every_route_and_its_page_shows_them(served):
    stated = served.get("/openapi.json").json
    page = served.ask("GET", "/api").body.decode()
    routes = [(path, *each) for path, methods in stated["paths"].items() for each in methods.items()]
    assert len(routes) == 15
    for path, method, route in routes:
        assert route["summary"] and route["description"]
        assert f'<h2 id="{route["operationId"]}"><code>{method.upper()} {path}</code></h2>' in page
    assert not re.search(r"(src|href)=['\"]?https?:", page)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("hits.tsv", 'attachment; filename="hits.tsv"'),
        ('a"\r\nX: y', "attachment; filename=\"a_X_y\"; filename*=UTF-8''a%22__X%3A%20y"),
        ("../../etc/passwd", "attachment; filename=\"_.._etc_passwd\"; filename*=UTF-8''_.._etc_passwd"),
        ("Größe.txt", "attachment; filename=\"Gr_e.txt\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe.txt"),
        ("", "attachment; filename=\"results\"; filename*=UTF-8''results"),
        ("\ud800", "attachment; filename=\"_\"; filename*=UTF-8''_"),
    ],
)
def test_no_name_of_a_file_does_harm_in_a_header(name, header):
    assert disposition(name) == header
