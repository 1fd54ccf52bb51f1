"""The program says the messages that sentences of howto/troubleshooting.md quote; test_docs.py runs its blocks."""

import lzma
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from support.command_line import run
from support.docs_blocks import DOCS

TEXT = (DOCS / "howto" / "troubleshooting.md").read_text(encoding="utf-8")


def stderr_of(*arguments, folder):
    """Return what a command says on stderr."""
    return run(*arguments, cwd=folder).stderr


def check_quoted(message, said):
    assert f"`{message}`" in TEXT
    assert message in said


@pytest.fixture
def folder(tmp_path):
    packed = (ROOT / "tests" / "db" / "old_files" / "format3_taxonomy.h5.xz").read_bytes()
    (tmp_path / "old.h5").write_bytes(lzma.decompress(packed))
    (tmp_path / "x.fasta").write_text(">x\n")
    (tmp_path / "a.fasta").write_text(">a\nMKVLAAGIVGWWHH\n")
    return tmp_path


def test_messages_of_searches(folder):
    said = stderr_of("search", "x.fasta", "a.fasta", folder=folder)
    check_quoted("1 queries have no residues, such as 'x'", said)
    said = stderr_of("search", "a.fasta", "old.h5", folder=folder)
    check_quoted("got format 3, expected format 4; write a new one with: swsearch db convert", said)
    assert not stderr_of("db", "build", "a.fasta", "-o", "new.h5", "--quiet", folder=folder)
    said = stderr_of("search", "new.h5", "a.fasta", folder=folder)
    check_quoted("queries and subjects are swapped", said)


def test_a_port_that_is_in_use(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = stderr_of("serve", "a.fasta", "--port", port, folder=folder)
    check_quoted("expected one that is free; another program listens there", said)


@pytest.mark.exhaustive
def test_a_port_that_only_root_may_take():
    least = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if not least.exists() or int(least.read_text(encoding="ascii")) <= 80:
        pytest.skip("every user may take port 80 here")
    code = (
        "import os, encodings.idna\nfrom swsearch.server.run import bind\nif os.geteuid() == 0: os.setuid(65534)\n"
        "bind('127.0.0.1', 80)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    check_quoted("expected one that this user may take; those from 1024 are for all", done.stderr)
