"""The page of the HTTP API says what is: its commands run on a server, and print what it shows."""

import re
import shutil
from dataclasses import replace

import pytest
from conftest import ROOT

from support.docs_blocks import DOCS, Runner, blocks, matches
from support.serving import serving
from swsearch.db import Database

PAGE = DOCS / "reference" / "http-api.md"

NOTE = " {not-run: tests/server/test_http_api_page.py runs it}"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_of_the_page_print_what_it_shows(server_settings, tmp_path):
    database = tmp_path / "sample.h5"
    Database.build([ROOT / "examples" / "data" / "swissprot_sample.fasta.gz"], database).close()
    runner = Runner(tmp_path)
    tried = 0
    with serving(replace(server_settings, databases=(database,), folder=tmp_path / "state")) as served:
        for block in blocks(PAGE.read_text(encoding="utf-8").replace(NOTE, "")):
            if block.is_run:
                block.text = block.text.replace("http://localhost:8080", served.url)
                printed = runner.run(block)
                assert matches(block.output or "", printed), f"{PAGE.name}:{block.line} printed\n{printed}"
                tried += 1
    assert tried == 4


def test_metrics_that_the_page_names_are_there(served):
    told = served.ask("GET", "/metrics").body.decode()
    for name in re.findall(r"`(swsearch_\w+)`", PAGE.read_text(encoding="utf-8")):
        assert name in told, name
