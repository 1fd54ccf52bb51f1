"""Pages about clusters: blocks that start servers run as written, and names in the manifests exist."""

import re
import sys
from dataclasses import replace

import pytest
from conftest import ROOT

from support.docs_blocks import DOCS, Runner, blocks
from support.processes import free_ports

NOTE = "not-run: starts servers; an exhaustive test runs it"

PORTS = ("8786", "8788")
"""Those of the page, which may be in use here."""


@pytest.mark.exhaustive
def test_a_cluster_by_hand_and_one_with_tls(tmp_path):
    pytest.importorskip("distributed")
    runner = Runner(tmp_path)
    program = tmp_path / ".bin" / "dask"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dask "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    found = [block for block in blocks((DOCS / "howto" / "clusters.md").read_text("utf-8")) if block.note == NOTE]
    assert len(found) == 2
    ports = dict(zip(PORTS, free_ports(2), strict=True))
    printed = []
    for block in found:
        text = re.sub("|".join(PORTS), lambda match: ports[match[0]], block.text)
        trap = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n"  # also where a line fails
        printed.append(runner.run(replace(block, text=trap + text)))
    assert printed[0].endswith("\nsame\n")
    assert "workers can read all volumes" in printed[0]
    assert (tmp_path / "tls.tsv").read_bytes() == (tmp_path / "alone.tsv").read_bytes()


def test_manifests_have_the_names_that_they_refer_to():
    folder = ROOT / "examples" / "kubernetes"
    cluster, search = ((folder / name).read_text("utf-8") for name in ("cluster.yaml", "search.yaml"))
    assert "\t" not in cluster + search
    name = re.search(r"kind: DaskCluster\nmetadata:\n  name: (\S+)", cluster)[1]
    assert f"tcp://{name}-scheduler:8786" in search
    assert f"dask.org/cluster-name: {name}," in cluster
    images = re.findall(r"image: (\S+)", cluster + search)
    assert len(images) == 3
    assert len(set(images)) == 1
    for text in (cluster, search):
        assert set(re.findall(r"- \{name: (data|out), mountPath", text)) == set(
            re.findall(r"- name: (\S+)\n          persistentVolumeClaim", text)
        )
