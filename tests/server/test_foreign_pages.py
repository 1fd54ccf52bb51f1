"""Requests that another site's page makes a browser send: none changes anything, and programs go on working."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from support.serving import QUERY, SEQUENCES, Reply, Served, serving
from swsearch.server.settings import ServerSettings

PUT = urlencode({"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "tiny", "QUERY": SEQUENCES["alpha"]})
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TEXT = {"Content-Type": "text/plain"}

USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
BROWSER = {"User-Agent": USER_AGENT, "Accept": "text/html", "Accept-Language": "en", "Upgrade-Insecure-Requests": "1"}
POWERSHELL = "Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10.0.26100; en-US) PowerShell/7.5.0"

FOREIGN = {
    "a frame on another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    "a frame on another port": {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"},
    "a picture over plain HTTP": {"Referer": "http://evil.example/page"},
    "a picture on another port": {"Referer": "http://127.0.0.1:1/page"},
    "a picture on port 80": {"Referer": "http://127.0.0.1/page"},
    "a picture without a referrer": {},
    "a sandboxed frame": {"Origin": "null"},
    "a script on another port": {"Origin": "http://127.0.0.1:1"},
    "a script on port 80 under another name": {"Origin": "http://localhost"},
    "the same port, another scheme": {"Origin": "https://127.0.0.1:{port}"},
    "an own name in a foreign path": {"Referer": "http://evil.example/http://127.0.0.1:{port}/"},
    "an own name as a user": {"Referer": "http://127.0.0.1:{port}@evil.example/"},
    "an own name as a prefix": {"Origin": "http://127.0.0.1:{port}.evil.example"},
    "an origin that is none": {"Origin": "http://["},
    "a port that is none": {"Origin": "http://127.0.0.1:99999"},
    "a foreign origin and an own referrer": {"Origin": "null", "Referer": "http://127.0.0.1:{port}/"},
    "an own origin on a foreign site": {
        "Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate",
    },
    "no user agent": {"User-Agent": ""},
}  # fmt: skip
"""Headers of browsers, besides `BROWSER`, whose request another site's page may have caused."""

OWN = {
    "a form of the page": {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
    "an address that was typed": {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    "a form over plain HTTP": {"Origin": "http://127.0.0.1:{port}"},
    "an old browser's form": {"Referer": "http://127.0.0.1:{port}/jobs?page=2"},
    "a page without a referrer": {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
}
"""Headers of browsers, besides `BROWSER`, on this server's own pages."""

PROGRAMS = {
    "nothing": {},
    "curl": {"User-Agent": "curl/8.5.0", "Accept": "*/*"},
    "Biopython": {"User-Agent": "BiopythonClient"},
    "requests": {"User-Agent": "python-requests/2.32.0", "Accept-Encoding": "gzip, deflate", "Accept": "*/*"},
    "BioPerl": {"User-Agent": "bioperl-Bio_Tools_Run_RemoteBlast/1.7.8", "TE": "deflate,gzip;q=0.3"},
    "fetch of Node.js": {"User-Agent": "node", "Accept-Language": "*", "Sec-Fetch-Mode": "cors"},
    "PowerShell": {"User-Agent": POWERSHELL},
}
"""Headers of programs that are no browsers."""


def jobs_of(served: Served) -> int:
    return len(served.jobs.jobs_of("127.0.0.1"))


def filled(served: Served, headers: dict[str, str]) -> dict[str, str]:
    return {name: value.format(port=served.port) for name, value in headers.items()}


def put_by_get(served: Served, headers: dict[str, str], path: str = "/Blast.cgi") -> Reply:
    return served.ask("GET", f"{path}?{PUT}", headers=filled(served, headers))


def new_job(served: Served) -> str:
    return str(served.post("/jobs?database=tiny&wait=30", QUERY, **TEXT).json["id"])


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_no_foreign_page_submits_or_deletes_by_a_link(served: Served, headers: dict[str, str]) -> None:
    job = new_job(served)
    before = jobs_of(served)
    sent = BROWSER | headers
    for path, words in (("/Blast.cgi", PUT), ("/blast/Blast.cgi", f"cmd=%20pUt&{PUT[8:]}")):
        reply = served.ask("GET", f"{path}?{words}", headers=filled(served, sent))
        assert (reply.status, reply.headers["content-type"]) == (403, "text/html; charset=utf-8")
        page = reply.body.decode()
        assert '<p class="error">' in page
        assert "RID" not in page
    reply = served.ask("GET", f"/Blast.cgi?CMD=Delete&RID={job}", headers=filled(served, sent))
    assert reply.status == 403
    assert "Status=" not in reply.body.decode()
    assert jobs_of(served) == before
    assert served.get(f"/jobs/{job}").status == 200
    # reading changes nothing
    reply = served.ask("GET", f"/Blast.cgi?CMD=Get&RID={job}&FORMAT_OBJECT=SearchInfo", headers=filled(served, sent))
    assert "Status=READY" in reply.body.decode()


CHANGES = [
    ("POST", "/Blast.cgi", PUT, FORM),
    ("POST", "/Blast.cgi", PUT, TEXT),
    ("POST", "/Blast.cgi", "CMD=Delete&RID={job}", FORM),
    ("POST", "/api/v1/jobs?database=tiny", QUERY, TEXT),
    ("POST", "/api/v1/jobs", f'{{"database": "tiny", "queries": "{SEQUENCES["alpha"]}"}}', TEXT),
    ("POST", "/api/v1/search?database=tiny", QUERY, TEXT),
    ("POST", "/api/v1/jobs/{job}/cancel", "", TEXT),
    ("DELETE", "/api/v1/jobs/{job}", None, {}),
    ("PUT", "/api/v1/jobs/{job}", "", TEXT),
    ("POST", "/search", f"database=tiny&queries={SEQUENCES['alpha']}", FORM),
    ("POST", "/jobs/{job}/cancel", "", FORM),
    ("POST", "/jobs/{job}/delete", "", FORM),
    ("POST", "/login", "token=x", FORM),
    ("POST", "/logout", "", FORM),
    ("POST", "/clear", "", FORM),
]
"""All that changes something: method, path, body and headers."""


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_no_foreign_page_posts(served: Served, headers: dict[str, str]) -> None:
    job = new_job(served)
    before = jobs_of(served)
    for method, path, body, kind in CHANGES:
        given = BROWSER | kind | filled(served, headers)
        reply = served.ask(method, path.format(job=job), body and body.replace("{job}", job), given)
        assert reply.status == 403, (method, path, reply.body)
        assert path != "/search" or b"<h1>Not allowed</h1>" in reply.body
    assert jobs_of(served) == before
    assert served.get(f"/jobs/{job}").status == 200


def test_no_page_is_asked_before_a_foreign_script_sends(served: Served) -> None:
    """A preflight is not answered as CORS wants it, so that a browser sends no JSON and no DELETE."""
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "DELETE"}
    for path in ("/api/v1/jobs", f"/api/v1/jobs/{new_job(served)}", "/Blast.cgi", "/api/v1/search"):
        reply = served.ask("OPTIONS", path, headers=BROWSER | asked)
        assert reply.status == 405
        assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", OWN.values(), ids=OWN)
def test_the_own_pages_change_what_they_may(served: Served, headers: dict[str, str]) -> None:
    given = filled(served, BROWSER | headers)
    assert "    RID = " in put_by_get(served, given).body.decode()
    job = new_job(served)
    assert served.ask("GET", f"/Blast.cgi?CMD=Delete&RID={job}", headers=given).status == 200
    assert served.get(f"/jobs/{job}").status in (404, 410)
    assert served.ask("POST", f"/jobs/{new_job(served)}/delete", "", FORM | given).status == 303
    assert served.ask("DELETE", f"/api/v1/jobs/{new_job(served)}", headers=given).status == 204


@pytest.mark.parametrize("headers", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_go_on_working(served: Served, headers: dict[str, str]) -> None:
    assert "    RID = " in put_by_get(served, headers).body.decode()
    assert "    RID = " in served.ask("POST", "/Blast.cgi", PUT, FORM | headers).body.decode()
    job = new_job(served)
    assert served.ask("GET", f"/Blast.cgi?CMD=Delete&RID={job}", headers=headers).status == 200
    assert served.post("/jobs?database=tiny", QUERY, **TEXT | headers).status == 202


def test_a_refusal_says_what_to_do(served: Served) -> None:
    reply = served.ask("POST", "/logout", "", FORM | {"Origin": "http://127.0.0.1:1"})
    expected = f"Origin: got 'http://127.0.0.1:1', expected 'http://127.0.0.1:{served.port}'"
    assert reply.error["message"].startswith(expected)
    message = put_by_get(served, BROWSER).body.decode()
    assert "expected a request of this server's own pages" in message
    assert "User-Agent" in message


@pytest.fixture(scope="module")
def proxied(server_settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server behind a proxy on this machine, which serves it under ``/lab`` of ``lab.example.org``."""
    folder = tmp_path_factory.mktemp("proxied")
    settings = replace(
        server_settings, databases=server_settings.databases[1:], folder=folder, root_path="/lab",
        hosts=("127.0.0.1", "lab.example.org", "*.uni.example"),
    )  # fmt: skip
    with serving(settings, forwarded=["127.0.0.1"]) as found:
        yield found


BACKEND = "127.0.0.1:{port}"
HTTPS = {"X-Forwarded-Proto": "https"}


@pytest.mark.parametrize(
    ("host", "origin", "more", "is_own"),
    [
        # the proxy passes the scheme and the host on
        ("lab.example.org", "https://lab.example.org", HTTPS, True),
        ("LAB.example.org:443", "https://lab.example.org", HTTPS, True),
        ("lab.example.org:8443", "https://lab.example.org:8443", HTTPS, True),
        ("a.uni.example:8443", "https://a.uni.example:8443", HTTPS, True),
        ("lab.example.org", "http://lab.example.org", HTTPS, False),
        ("lab.example.org", "https://lab.example.org:8443", HTTPS, False),
        ("lab.example.org:8443", "https://lab.example.org", HTTPS, False),
        ("lab.example.org:8443", "https://lab.example.org:9443", HTTPS, False),
        ("a.uni.example", "https://b.uni.example", HTTPS, False),
        ("lab.example.org", "https://evil.example", HTTPS, False),
        # plain HTTP, also without a proxy
        ("lab.example.org", "http://lab.example.org", {}, True),
        ("lab.example.org", "http://lab.example.org:80", {}, True),
        ("lab.example.org:{port}", "http://lab.example.org:{port}", {}, True),
        ("[::1]:{port}", "http://[::1]:{port}", {}, True),
        ("[::1]:{port}", "http://[::1]:1", {}, False),
        ("lab.example.org:{port}", "https://lab.example.org:{port}", {}, False),
        ("lab.example.org:{port}", "http://lab.example.org", {}, False),
        ("lab.example.org:{port}", "https://lab.example.org", {}, False),
        ("lab.example.org:{port}", "http://lab.example.org:9000", {}, False),
        ("localhost:{port}", "http://127.0.0.1:{port}", {}, False),
        ("localhost:{port}", "http://127.0.0.1", {}, False),
        # the proxy ends TLS and does not pass the scheme on
        ("lab.example.org", "https://lab.example.org", {}, True),
        ("lab.example.org:8443", "https://lab.example.org:8443", {}, True),
        ("lab.example.org", "https://lab.example.org:8443", {}, False),
        # the proxy puts its own Host, and says what it was
        (BACKEND, "https://lab.example.org:8443", {"X-Forwarded-Host": "lab.example.org:8443", **HTTPS}, True),
        (BACKEND, "http://lab.example.org:81", {"X-Forwarded-Host": "x.org, lab.example.org:81"}, True),
        (BACKEND, "https://lab.example.org", {"X-Forwarded-Host": "lab.example.org"}, True),
        (BACKEND, "http://lab.example.org", {"X-Forwarded-Host": "lab.example.org:81"}, False),
        (BACKEND, "http://evil.example", {"X-Forwarded-Host": "evil.example"}, False),
        (BACKEND, "http://127.0.0.1:9000", {"X-Forwarded-Host": "127.0.0.1:9000"}, False),
        # the proxy puts its own Host, and does not say what it was
        (BACKEND, "https://lab.example.org", {}, True),
        (BACKEND, "http://lab.example.org", {}, True),
        (BACKEND, "http://lab.example.org:9000", {}, False),
        (BACKEND, "http://uni.example", {}, False),
        (BACKEND, "http://localhost", {}, False),
        (BACKEND, "http://127.0.0.1", {}, False),
    ],
)
def test_an_origin_has_scheme_host_and_port(
    proxied: Served, host: str, origin: str, more: dict[str, str], is_own: bool
) -> None:
    given = FORM | filled(proxied, {"Host": host, "Origin": origin, **more})
    for path in ("/logout", "/lab/logout"):
        assert proxied.ask("POST", path, "", given).status == (303 if is_own else 403)
    given["Referer"] = f"{given.pop('Origin')}/lab/jobs"
    assert proxied.ask("POST", "/lab/logout", "", given).status == (303 if is_own else 403)


@pytest.mark.parametrize("site", ["same-origin", "none", "same-site", "cross-site", "x"])
def test_what_a_browser_says_of_the_site_decides_whatever_a_proxy_does(proxied: Served, site: str) -> None:
    given: dict[str, Any] = {"Host": "lab.example.org", "Origin": "https://lab.example.org:8443"}
    reply = proxied.ask("POST", "/lab/logout", "", FORM | given | {"Sec-Fetch-Site": site})
    assert reply.status == (303 if site in ("same-origin", "none") else 403)


def test_any_name_allows_no_origin(server_settings: ServerSettings, tmp_path: Any) -> None:
    settings = replace(server_settings, databases=server_settings.databases[1:], folder=tmp_path, hosts=("*",))
    with serving(settings) as found:
        for host, origin, status in (
            ("any.example", "http://any.example", 303),
            ("any.example", "http://evil.example", 403),
            (f"127.0.0.1:{found.port}", "http://evil.example", 403),
        ):
            assert found.ask("POST", "/logout", "", FORM | {"Host": host, "Origin": origin}).status == status
