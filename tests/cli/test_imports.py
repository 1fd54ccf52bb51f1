"""A command imports what it uses, not more: its first second is imports."""

import subprocess
import sys

import pytest

from support.command_line import run

SCRIPT = "import sys; from swsearch.cli.main import main; main(); print(*sys.modules, file=sys.stderr)"

NOT_FOR_TABLES = {
    "swsearch.pipeline": {"checkpoint", "codec", "iterate", "loci", "profile_update"},
    "swsearch.profiles": {"construction", "hhm", "hmm", "json_profile", "pssm", "row_filter", "sequence_weights"},
    "swsearch.report": {"alignments", "arrow", "blast_json", "blast_xml", "html", "json_lines", "pairwise", "sam"},
    "swsearch": {"client.client", "cluster", "plots", "server"},
}
"""Modules of iterations, DNA databases, checkpoints and other formats, by package."""


@pytest.mark.parametrize("outfmt", ["6", "6 qseqid sseqid evalue cigar", "10"])
def test_a_search_to_a_table_imports_no_other_formats_and_no_iterations(outfmt, tmp_path):
    (tmp_path / "q.fasta").write_text(">q\nMKVLAAGIVGWWHEAGAWGHEE\n")
    assert run("db", "build", "q.fasta", "-o", "q.h5", cwd=tmp_path).returncode == 0
    line = [
        sys.executable,
        "-c",
        SCRIPT,
        "search",
        "q.fasta",
        "q.h5",
        "--outfmt",
        outfmt,
        "--engine",
        "cpu",
        "--quiet",
    ]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.startswith("q" if outfmt != "10" else "q,q")
    imported = set(done.stderr.split())
    assert "swsearch.report.tabular" in imported
    unused = {f"{package}.{name}" for package, names in NOT_FOR_TABLES.items() for name in names}
    assert imported & (unused | {"h5py", "pandas", "pyarrow", "httpx", "fastapi", "Bio"}) == set()
