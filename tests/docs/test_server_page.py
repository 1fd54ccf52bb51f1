"""Guide to a server: its blocks run in one shell; nginx and Caddy accept the files of `examples/server/`."""

import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

from support.docs_blocks import DOCS, Runner, blocks, matches
from support.processes import free_ports

PAGE = (DOCS / "howto" / "blast-server.md").read_text(encoding="utf-8")

NOTE = "not-run: starts a server; an exhaustive test runs it"

PORTS = ("8080", "8081")
"""Those of the page, which may be in use here."""

END = "=== end of block"


def noted():
    return [block for block in blocks(PAGE) if block.note == NOTE]


def script():
    """Return one script of all blocks: servers that one starts are asked by the next."""
    lines = ["trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"]
    for block in noted():
        lines.append(block.text if block.language == "sh" else f"python3 - <<'PYTHON'\n{block.text}PYTHON")
        lines.append(f"echo '{END}'")
    return "\n".join(lines)


def shown():
    """Return what the page shows that each block prints; None where it does not."""
    found = blocks(PAGE)
    after = dict(zip([block.line for block in found], [*found[1:], None], strict=True))
    return [
        following.text if (following := after[block.line]) is not None and following.language == "text" else None
        for block in noted()
    ]


def test_the_page_shows_what_its_blocks_print():
    assert len(noted()) > 5
    assert sum(text is not None for text in shown()) > 4


@pytest.mark.exhaustive
def test_the_blocks_of_the_page_run_and_print_what_it_shows(tmp_path):
    runner = Runner(tmp_path)
    python = tmp_path / ".bin" / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    ports = dict(zip(PORTS, free_ports(2), strict=True))
    text = re.sub(rf"\b({'|'.join(PORTS)})\b", lambda match: ports[match[0]], script())
    text = re.sub(r"(swsearch serve \S+ )(.*--port)?", lambda match: _with_port(match, ports), text)
    block = next(block for block in noted() if block.language == "sh")
    block.text = text
    printed = runner.run(block).split(f"{END}\n")
    for number, (expected, got) in enumerate(zip(shown(), printed, strict=False)):
        if expected is not None:
            assert matches(expected, got), f"block {number} printed\n{got}"
    assert len(printed) == len(noted()) + 1


def _with_port(match, ports):
    return match[0] if match[2] else f"{match[1]}--port {ports['8080']} "


SERVER = ROOT / "examples" / "server"


@pytest.mark.peer
def test_nginx_takes_its_part(tmp_path):
    for program in ("nginx", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=lab.example.org",
         "-keyout", tmp_path / "lab.key", "-out", tmp_path / "lab.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    text = (SERVER / "nginx.conf").read_text(encoding="utf-8")
    text = text.replace("/etc/ssl/", f"{tmp_path}/").replace("443", free_ports(1)[0])
    path = tmp_path / "nginx.conf"
    path.write_text(f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n{text}\n}}\n", encoding="utf-8")
    done = subprocess.run(["nginx", "-t", "-c", path, "-p", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr


@pytest.mark.peer
def test_caddy_takes_its_part(tmp_path):
    if shutil.which("caddy") is None:
        pytest.skip("caddy is not installed")
    path = SERVER / "Caddyfile"
    done = subprocess.run(
        ["caddy", "validate", "--adapter", "caddyfile", "--config", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
