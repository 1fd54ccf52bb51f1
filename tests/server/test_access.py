"""Tokens, clients and names of hosts; and a server that asks for a token."""

from dataclasses import replace

import pytest

from support.serving import QUERY, serving, until
from swsearch.cli.serve import check_host_name, check_networks, read_tokens
from swsearch.errors import InputError, OptionError
from swsearch.server.access import Hosts, Tokens, client_name

TOKEN, OTHER = "a-token-of-twenty-letters", "another.token_of~twenty"


def test_a_file_of_tokens_is_read(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# of the lab\n\n{TOKEN}\n  {OTHER}  \n")
    path.chmod(0o600)
    assert read_tokens(path) == (frozenset([TOKEN, OTHER]), "")
    path.chmod(0o644)
    assert "chmod 600" in read_tokens(path)[1]


@pytest.mark.parametrize("content", ["", "# nothing\n", "short\n", f"{TOKEN} x\n", f"{TOKEN}/x\n", f"{TOKEN}é\n"])
def test_a_file_without_usable_tokens_is_refused_and_none_shown(tmp_path, content):
    path = tmp_path / "tokens"
    path.write_text(content)
    with pytest.raises(InputError, match="expected") as refused:
        read_tokens(path)
    assert TOKEN not in str(refused.value)
    with pytest.raises(InputError, match="cannot be read"):
        read_tokens(tmp_path / "nothing")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="no text"):
        read_tokens(path)


def test_a_client_is_its_token_or_its_address_and_its_browser():
    assert client_name(None, "10.0.0.1", "") == "10.0.0.1"
    assert client_name("abc", "10.0.0.1", "") == "token:abc"
    assert client_name(None, "::1", "b" * 32) == f"::1/{'b' * 32}"
    for wrong in ("short", "c" * 65, "a/b" * 10, "é" * 20):
        assert client_name(None, "::1", wrong) == "::1"


def test_hosts_that_are_allowed():
    hosts = Hosts(["Blast.lab.org", "*.uni.org"])
    for name in ("blast.lab.org", "BLAST.lab.org:80", "blast.lab.org.", "a.uni.org", "a.b.uni.org:1", "[::1]", "::1"):
        assert hosts.is_allowed(name), name
    for name in ("lab.org", "x.blast.lab.org", "uni.org", "evil.org", "blast.lab.org.evil.org", "blast.lab.org@evil"):
        assert not hosts.is_allowed(name), name
    assert Hosts(["*"]).is_allowed("anything.org")


def test_values_of_options_are_checked():
    assert [check_host_name(name) for name in ("a.org", "*.a.org", "*")] == ["a.org", "*.a.org", "*"]
    for wrong in ("", "http://a.org", "a.org:80", "a.*.org", "a b", "a" * 300):
        with pytest.raises(OptionError, match="host name"):
            check_host_name(wrong)
    assert check_networks("127.0.0.1, 10.0.0.0/8,::1") == ["127.0.0.1", "10.0.0.0/8", "::1"]
    for wrong in ("*", "localhost", "10.0.0.1/8"):
        with pytest.raises(OptionError, match="addresses or networks"):
            check_networks(wrong)


@pytest.fixture(scope="module")
def guarded(server_settings, tmp_path_factory):
    """A server that asks for a token, behind a proxy at this machine's own address."""
    folder = tmp_path_factory.mktemp("guarded")
    settings = replace(
        server_settings, databases=server_settings.databases[1:], folder=folder, tokens=frozenset([TOKEN, OTHER]),
        root_path="/lab",
    )  # fmt: skip
    with serving(settings, forwarded=["127.0.0.1"], is_verbose=True) as found:
        yield found


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_nothing_is_told_without_a_token(guarded):
    for path in ("/api/v1/databases", "/api/v1/jobs", "/api/v1/health", "/api", "/metrics", "/api/v1/openapi.json"):
        reply = guarded.ask("GET", path)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Bearer realm="swsearch"'), path
        assert reply.error["code"] == "not_authenticated"
    assert guarded.get("/ready").status == 200
    for headers in (bearer("nothing"), bearer(""), {"Authorization": TOKEN}, {"Cookie": f"swsearch-token={TOKEN}"}):
        assert guarded.get("/databases", **headers).status == 401
    assert guarded.post("/search?database=two", QUERY).status == 401


def test_a_token_or_its_cookie_lets_in(guarded):
    assert guarded.get("/databases", **bearer(TOKEN)).status == 200
    assert guarded.get("/databases", Cookie=f"swsearch-token={Tokens.cookie(OTHER)}; a=b").status == 200
    assert guarded.ask("GET", "/metrics", headers=bearer(TOKEN)).status == 200


def test_a_token_is_a_client_wherever_it_comes_from(guarded):
    given = {"Content-Type": "text/plain", "X-Forwarded-For": "10.0.0.9"}
    job = guarded.post("/jobs?database=two&wait=30", QUERY, **given, **bearer(TOKEN)).json
    assert job["links"]["self"] == f"/lab/api/v1/jobs/{job['id']}"
    assert job["is_mine"]
    assert guarded.get(f"/jobs/{job['id']}", **bearer(TOKEN)).json["is_mine"]
    assert not guarded.get(f"/jobs/{job['id']}", **bearer(OTHER)).json["is_mine"]
    assert guarded.get("/jobs", **bearer(OTHER)).json == {"jobs": []}


def test_a_proxy_may_leave_or_take_away_what_stands_before_paths(guarded):
    for path in ("/lab/api/v1/databases", "/api/v1/databases"):
        assert guarded.ask("GET", path, headers=bearer(TOKEN)).status == 200
    assert guarded.ask("GET", "/lab/lab/api/v1/databases", headers=bearer(TOKEN)).status == 404
    assert b"/lab/api/v1/jobs" in guarded.ask("GET", "/lab/api", headers=bearer(TOKEN)).body


def test_a_token_may_stand_before_the_path_of_blast_alone(guarded):
    reply = guarded.ask("GET", f"/{TOKEN}/Blast.cgi")
    assert reply.status != 401
    assert guarded.ask("GET", f"/lab/{TOKEN}/blast/Blast.cgi").status != 401
    assert guarded.ask("GET", "/no-token-of-this-server/Blast.cgi").status == 401
    assert guarded.ask("GET", f"/{TOKEN}/api/v1/databases").status == 401


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (f"/{TOKEN}/Blast.cgi?CMD=Get&RID=x", "/lab/.../Blast.cgi"),
        (f"/lab/{TOKEN}/blast/Blast.cgi", "/lab/.../blast/Blast.cgi"),
        (f"/lab//{TOKEN}//Blast.cgi", "/lab//...//Blast.cgi"),
        (f"/{TOKEN}", "/lab/..."),
        (f"/api/v1/jobs/{TOKEN}/", "/lab/api/v1/jobs/.../"),
        (f"/{TOKEN[:-1]}/Blast.cgi", "/lab/.../Blast.cgi"),
        ("/blast/Blast.cgi", "/lab/blast/Blast.cgi"),
    ],
)
def test_no_token_is_in_the_log(guarded, path, shown):
    reply = guarded.ask("GET", path)
    until(lambda: any(line.split()[1:4] == ["GET", shown, str(reply.status)] for line in guarded.lines))
    assert not any(TOKEN[:-1] in line for line in guarded.lines)
    assert TOKEN[:-1].encode() not in reply.body


def test_an_address_is_believed_from_a_proxy_alone(server_settings, tmp_path, monkeypatch):
    for proxies, client in (([], "127.0.0.1"), (["127.0.0.1"], "10.9.8.7"), (["10.0.0.0/8"], "127.0.0.1")):
        settings = replace(server_settings, databases=server_settings.databases[1:], folder=tmp_path / client)
        with serving(settings, forwarded=proxies) as found:
            seen = []
            monkeypatch.setattr(found.jobs, "jobs_of", lambda client, *_, seen=seen: seen.append(client) or [])
            assert found.get("/jobs", **{"X-Forwarded-For": "10.9.8.7"}).status == 200
            assert seen == [client]
