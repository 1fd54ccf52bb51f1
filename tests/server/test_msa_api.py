"""The MSA API: request loops of its clients, written from the published ones, and what they parse."""

from __future__ import annotations

import io
import os
import random
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from support.serving import PATIENCE, SEQUENCES, Reply, Served, serving, tiny_database
from support.small_servers import ObedientEngine, Opened, engines, proteins, settings
from swsearch.db import Database
from swsearch.server import msa_api
from swsearch.server.settings import ServerSettings

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
MAIN, ENV = "uniref.a3m", "bfd.mgnify30.metaeuk30.smag30.a3m"
TESTS = Path(__file__).resolve().parents[1]


def fasta(sequences: Sequence[str], first: int = 101) -> str:
    return "".join(f">{first + place}\n{letters}\n" for place, letters in enumerate(sequences))


def post(served: Served, q: str, mode: str = "env", path: str = "/ticket/msa", **headers: str) -> Reply:
    return served.ask("POST", path, urlencode({"q": q, "mode": mode}), {**FORM, **headers})


def status_of(served: Served, ticket: str) -> str:
    return str(served.ask("GET", f"/ticket/{ticket}").json["status"])


def complete(served: Served, submit: Callable[[], Reply]) -> bytes:
    """Submit and poll as the published loops do, without their pauses; return the tar."""
    out = submit().json
    end = time.monotonic() + PATIENCE
    while out["status"] in ("UNKNOWN", "RATELIMIT"):
        assert time.monotonic() < end
        out = submit().json
    assert out["status"] not in ("ERROR", "MAINTENANCE"), out
    ticket = out["id"]
    while out["status"] in ("UNKNOWN", "RUNNING", "PENDING"):
        assert time.monotonic() < end
        time.sleep(0.01)
        out = served.ask("GET", f"/ticket/{ticket}").json
    assert out["status"] == "COMPLETE", out
    reply = served.ask("GET", f"/result/download/{ticket}")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/octet-stream")
    assert int(reply.headers["content-length"]) == len(reply.body)
    return reply.body


def members(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        files = {each.name: archive.extractfile(each) for each in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def blocks(a3m: bytes) -> dict[str, list[str]]:
    """Read a file as ColabFold, Boltz, Chai-1 and OpenFold3 do: line by line, a block after each NUL."""
    found: dict[str, list[str]] = {}
    update, name = True, ""
    for line in io.StringIO(a3m.decode(), newline="\n"):
        if "\x00" in line:
            line, update = line.replace("\x00", ""), True  # noqa: PLW2901
        if line.startswith(">") and update:
            name, update = line[1:].rstrip(), False
            found.setdefault(name, [])
        found[name].append(line)
    return found


def check_rows(block: Sequence[str], query: str) -> list[str]:
    """Check that every second line is a row in the columns of the query, and return the headers."""
    text = "".join(block)
    assert text.endswith("\n")
    lines = text.splitlines()
    headers, rows = lines[::2], lines[1::2]
    assert all(header.startswith(">") for header in headers)
    assert rows[0] == query
    assert all(len(re.sub("[a-z]", "", row)) == len(query) for row in rows)
    return headers


def test_the_loop_of_colabfold(served: Served) -> None:
    """Distinct sequences from 101 on; blocks of both files are joined by their number."""
    sequences = [SEQUENCES["alpha"], SEQUENCES["gamma"], SEQUENCES["alpha"]]
    distinct = list(dict.fromkeys(sequences))
    agent = {"User-Agent": "colabfold/1.5.5"}
    files = members(complete(served, lambda: post(served, fasta(distinct), **agent)))
    assert list(files) == [MAIN, ENV, "pdb70.m8"]
    assert files["pdb70.m8"] == b""
    lines: dict[int, list[str]] = {}
    for name in (MAIN, ENV):
        assert files[name].endswith(b"\n\0")
        assert files[name].count(b"\0") == len(distinct)
        for header, block in blocks(files[name]).items():
            lines.setdefault(int(header), []).extend(block)
    assert sorted(lines) == [101, 102]
    for letters in sequences:
        number = 101 + distinct.index(letters)
        headers = check_rows(lines[number], letters)
        assert headers.count(f">{number}") == 2
    assert any(header.startswith(">beta/") for header in check_rows(lines[101], SEQUENCES["alpha"]))


def test_the_loop_of_boltz(served: Served) -> None:
    """A form that is called JSON, if there is an API key; every second line is a row."""
    headers = {"User-Agent": "boltz", "Content-Type": "application/json", "X-API-Key": "anything"}
    tar = complete(served, lambda: post(served, fasta([SEQUENCES["delta"]]), "env", **headers))
    (block,) = blocks(members(tar)[MAIN]).values()
    rows = "".join(block).strip().splitlines()
    kept = [row for row in rows[1::2] if row != "-" * len(row)]
    assert kept[0] == SEQUENCES["delta"]
    assert len(kept) > 1


def test_the_loop_of_chai(served: Served) -> None:
    """A multipart form too; each file is read by itself, and the query stands first."""
    text = fasta([SEQUENCES["beta"]])
    parts = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'
        for name, value, more in (("q", text, '; filename="q.fasta"'), ("mode", "env", ""))
    )
    kind = {"Content-Type": "multipart/form-data; boundary=b", "User-Agent": "chai-lab/0.6 feedback@example.org"}
    tar = complete(served, lambda: served.ask("POST", "/ticket/msa", f"{parts}--b--\r\n", kind))
    assert tar == complete(served, lambda: post(served, text))  # the same ticket
    files = members(tar)
    for name in (MAIN, ENV):
        assert files[name].decode().startswith(f">101\n{SEQUENCES['beta']}\n")


def test_the_loop_of_openfold3(served: Served) -> None:
    """Without the environmental database, `all`: one alignment of each representative sequence."""
    sequences = [SEQUENCES[name] for name in ("gamma", "delta")]
    files = members(complete(served, lambda: post(served, fasta(sequences), "all", **{"User-Agent": "openfold"})))
    assert list(files) == [MAIN, "pdb70.m8"]
    found = {int(header): block for header, block in blocks(files[MAIN]).items()}
    for number, letters in enumerate(sequences, 101):
        check_rows(found[number], letters)


def test_the_loop_of_protenix(served: Served) -> None:
    """Headers come back as they were sent."""
    text = f">query_0\n{SEQUENCES['alpha']}"
    body = f"q={quote(text)}&mode=env-notemplates&email="
    files = members(complete(served, lambda: served.ask("POST", "/ticket/msa", body, FORM)))
    assert list(files) == [MAIN, ENV]
    assert files[MAIN].decode().startswith(f">query_0\n{SEQUENCES['alpha']}\n>")
    empty = members(complete(served, lambda: post(served, ">101\n\n>102\nMKVLAAGIV\n", "all")))[MAIN]
    assert empty.startswith(b">101\n\n\0>102\nMKVLAAGIV\n")
    odd = ">#2 sp|x y  z\r\n" + SEQUENCES["alpha"]
    files = members(complete(served, lambda: post(served, odd, "all-notemplates")))
    assert files[MAIN].decode().startswith(f">#2 sp|x y  z\n{SEQUENCES['alpha']}\n>")


def test_duplicates_and_queries_without_hits_have_blocks(served: Served) -> None:
    lonely = "PPPPPPPPPPPPPPPPPPPPPPPPPPPPPP"
    text = fasta([SEQUENCES["alpha"], lonely, SEQUENCES["alpha"]])
    files = members(complete(served, lambda: post(served, text, "env-nofilter")))
    main = blocks(files[MAIN])
    assert list(main) == ["101", "102", "103"]
    assert "".join(main["102"]) == f">102\n{lonely}\n"
    assert main["101"][1:] == main["103"][1:-1]  # a NUL ends the file
    assert blocks(files[ENV]) == {
        "101": [">101\n", f"{SEQUENCES['alpha']}\n"],
        "102": [">102\n", f"{lonely}\n"],
        "103": [">103\n", f"{SEQUENCES['alpha']}\n", ""],
    }  # this server has no environmental database


def test_an_environmental_database_makes_the_second_file(served: Served) -> None:
    body = urlencode({"q": fasta([SEQUENCES["gamma"]]), "mode": "env"}) + "&database[]=two&database[]=tiny"
    files = members(complete(served, lambda: served.ask("POST", "/ticket/msa", body, FORM)))
    assert (files[MAIN].count(b">"), files[ENV].count(b">")) == (1, 2)  # `two` has neither gamma nor delta


def test_a_database_by_its_name_is_the_environmental_one(tmp_path: Path) -> None:
    env = tiny_database(tmp_path / "bfd.mgnify30.metaeuk30.smag30.h5")
    databases = (env, tiny_database(tmp_path / "two.h5", ("alpha", "beta")))
    with serving(ServerSettings(databases, tmp_path / "state", engine="cpu", threads=1)) as served:
        files = members(complete(served, lambda: post(served, fasta([SEQUENCES["gamma"]]))))
        assert (files[MAIN].count(b">"), files[ENV].count(b">")) == (1, 2)


@pytest.mark.parametrize(("n", "mode", "kept"), [(999, "all", 999), (1000, "all", 10), (1000, "all-nofilter", 1000)])
def test_many_rows_are_filtered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, mode: str, kept: int
) -> None:
    """Of 1,000 rows or more, those stay that differ, until each stretch of the query has enough."""
    monkeypatch.setattr(msa_api, "FILTER", replace(msa_api.FILTER, diff=10))
    letters, rng = SEQUENCES["alpha"], random.Random(54)
    rows = {letters}
    while len(rows) < n:
        rows.add("".join(rng.choice("ADEFGHIKLMNPQRSTVWY") if rng.random() < 0.2 else each for each in letters))
    rows.remove(letters)
    records = "".join(f">s{place}\n{row}\n" for place, row in enumerate(sorted(rows)))
    (tmp_path / "many.fasta").write_text(records)
    Database.build([tmp_path / "many.fasta"], tmp_path / "many.h5").close()
    with serving(ServerSettings((tmp_path / "many.h5",), tmp_path / "state", engine="cpu", threads=1)) as served:
        files = members(complete(served, lambda: post(served, fasta([letters]), mode)))
    headers = check_rows(blocks(files[MAIN])["101"], letters)
    assert (len(headers), list(files)) == (kept, [MAIN, "pdb70.m8"])


@pytest.mark.parametrize(("mode", "taxa"), [("pairgreedy-env", [3, 2, 1]), ("paircomplete", [3])])
def test_chains_are_paired_by_taxon(tmp_path: Path, mode: str, taxa: list[int]) -> None:
    """Row i of each block belongs together; a chain without a partner has gaps."""
    chains = [letters for _, letters in proteins(9)][1:8:3]
    made = [(0, 3), (1, 3), (2, 3), (0, 1), (1, 1), (1, 2), (2, 2), (0, 9)]
    records = "".join(f">c{chain}_{taxon} x OX={taxon}\n{chains[chain][:-taxon]}\n" for chain, taxon in made)
    (tmp_path / "taxa.fasta").write_text(records)
    Database.build([tmp_path / "taxa.fasta"], tmp_path / "taxa.h5").close()
    with serving(ServerSettings((tmp_path / "taxa.h5",), tmp_path / "state", engine="cpu", threads=1)) as served:
        tar = complete(served, lambda: post(served, fasta(chains), mode, "/ticket/pair"))
        ticket = post(served, fasta(chains), mode, "/ticket/pair").json["id"]
        assert served.ask("GET", f"/ticket/type/{ticket}").json == {"type": "pair"}
    files = members(tar)
    assert list(files) == ["pair.a3m"]
    found = blocks(files["pair.a3m"])
    assert list(found) == ["101", "102", "103"]
    for chain, (number, letters) in enumerate(zip(found, chains, strict=True)):
        headers = check_rows(found[number], letters)
        rows = "".join(found[number]).splitlines()[1::2]
        assert len(rows) == 1 + len(taxa)
        for header, row, taxon in zip(headers[1:], rows[1:], taxa, strict=True):
            assert header.startswith(f">c{chain}_{taxon}/" if (chain, taxon) in made else ">no_hit")
            assert ((chain, taxon) in made) == (set(row) != {"-"})


def test_chains_of_a_database_without_taxa_have_the_queries_alone(served: Served) -> None:
    text = fasta([SEQUENCES["alpha"], SEQUENCES["gamma"]])
    files = members(complete(served, lambda: post(served, text, "", "/ticket/pair")))
    assert files["pair.a3m"].decode() == "".join(f"{record}\0" for record in re.findall(">.*\n.*\n", text))


def test_small_jobs_and_known_ones_are_complete_at_once(served: Served) -> None:
    text = fasta(["MKVLAAGIVGWWHHKDEFRTYPCNQSMKV"])
    first = post(served, text).json
    assert first["status"] == "COMPLETE"
    assert re.fullmatch("[A-Za-z0-9_-]{38}", first["id"])
    n_jobs = sum(served.jobs.store.counts().values())
    assert post(served, text).json == first
    assert post(served, text, "all").json["id"] != first["id"]
    assert sum(served.jobs.store.counts().values()) == n_jobs + 1
    assert served.ask("GET", f"/ticket/type/{first['id']}").json == {"type": "msa"}
    assert served.ask("GET", "/queue").json == {"queued": 0}
    several = served.ask("POST", "/tickets", f"tickets[]={first['id']}&tickets[]={'A' * 38}", FORM).json
    assert several == [first, {"id": "A" * 38, "status": "UNKNOWN", "reason": ""}]


def test_unknown_tickets_and_wrong_requests(served: Served) -> None:
    ticket = "A" * 38
    assert served.ask("GET", f"/ticket/{ticket}").json == {"id": ticket, "status": "UNKNOWN", "reason": ""}
    wrong = [
        served.ask("GET", f"/result/download/{ticket}"),
        served.ask("GET", f"/ticket/type/{ticket}"),
        served.ask("GET", "/ticket/short"),
        served.ask("GET", "/ticket/..%2F..%2Fetc%2Fpasswd"),
        served.ask("POST", "/ticket/msa", "mode=env", FORM),
        served.ask("POST", "/ticket/msa", b"{}\xff", {"Content-Type": "application/json"}),
        served.ask("POST", "/ticket/msa", "&".join(["q=a"] * 200), FORM),
        post(served, "no fasta"),
        post(served, ">101\n1234\n"),
        post(served, fasta([SEQUENCES["alpha"]]), "env-taxonomy"),
        post(served, fasta([SEQUENCES["alpha"]]), "pairgreedy"),
        post(served, fasta([SEQUENCES["alpha"]]), "env", "/ticket/pair"),
        post(served, fasta([SEQUENCES["alpha"]]), "pairwise", "/ticket/pair"),
        served.ask("POST", "/ticket/msa", f"q={fasta([SEQUENCES['alpha']])}&database[]=nr", FORM),
    ]
    for reply in wrong:
        assert reply.status == 400, reply.body
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        assert reply.body.decode().count("\n") == 1


def test_too_large_input_is_plain_text(opened: Opened) -> None:
    with opened(residues=100, body=5000) as served:
        for reply in (post(served, fasta(["MKV" * 40])), post(served, fasta(["MKV" * 4000]))):
            assert (reply.status, reply.headers["content-type"]) == (400, "text/plain; charset=utf-8")
            assert b"at most" in reply.body


def test_a_full_queue_is_ratelimit_for_new_jobs_only(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msa_api, "SUBMIT_SECONDS", 1.0)
    queries = [fasta([letters]) for _, letters in proteins(4)]
    engine = ObedientEngine()
    engine.may_go.clear()
    with opened(engine, client_jobs=1, workers=1) as served:
        first = post(served, queries[0], "all").json
        assert first["status"] in ("PENDING", "RUNNING")
        assert post(served, queries[0], "all").json["id"] == first["id"]
        refused = post(served, queries[1], "all")
        assert (refused.status, refused.json["status"]) == (429, "RATELIMIT")
        assert served.ask("GET", f"/result/download/{first['id']}").status == 400
        engine.may_go.set()
        complete(served, lambda: post(served, queries[0], "all"))
        complete(served, lambda: post(served, queries[1], "all"))


def test_a_failed_ticket_is_an_error_and_runs_again(opened: Opened) -> None:
    engine = ObedientEngine()
    engine.error = MemoryError()
    text = fasta([letters for _, letters in proteins(2)])
    with opened(engine) as served:
        failed = post(served, text, "all").json
        while failed["status"] != "ERROR":
            failed = served.ask("GET", f"/ticket/{failed['id']}").json
        assert "memory" in failed["reason"]
        engine.error = None
        complete(served, lambda: post(served, text, "all"))


def test_tokens_by_path_and_by_key(server_settings: ServerSettings, tmp_path: Path) -> None:
    token, text = "0123456789abcdef0123", fasta([SEQUENCES["alpha"]])
    with serving(replace(server_settings, folder=tmp_path, tokens=frozenset({token}))) as served:
        refused = post(served, text)
        assert (refused.status, refused.headers["content-type"]) == (401, "text/plain; charset=utf-8")
        found = post(served, text, path=f"/{token}/ticket/msa").json
        assert post(served, text, **{"X-API-Key": token}).json["id"] == found["id"]
        assert served.ask("GET", f"/{token}/result/download/{found['id']}").status == 200


SERVER = """
import sys
from pathlib import Path
from support.serving import serving
from support.small_servers import ObedientEngine, settings
from swsearch.server import databases

engine = ObedientEngine()
engine.may_go.clear()
engine.free = 1
databases.create_engine = lambda name, **options: engine
with serving(settings(Path(sys.argv[1]), Path(sys.argv[2]))) as served:
    print(served.port, flush=True)
    sys.stdin.read()
"""


def test_a_ticket_survives_a_kill(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = fasta([letters for _, letters in proteins(6)])
    folder = tmp_path / "served"
    line = [sys.executable, "-c", SERVER, str(database), str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        there: Any = Served("", port, *[None] * 5)  # type: ignore[arg-type]  # only its port is asked
        ticket = post(there, text).json["id"]
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
    with engines(monkeypatch, ObedientEngine()), serving(settings(database, folder)) as served:
        assert status_of(served, ticket) != "UNKNOWN"
        tar = complete(served, lambda: post(served, text))
        assert post(served, text).json["id"] == ticket
    with engines(monkeypatch, ObedientEngine()), serving(settings(database, folder)) as served:
        assert status_of(served, ticket) == "COMPLETE"
        assert served.ask("GET", f"/result/download/{ticket}").body == tar
