"""What --cluster is refused with; searches by clusters are in tests/cluster."""

import pytest

from support.command_line import fails, run

QUERY = ">q\nMKVLAAGIVGWWHHPE\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.fasta").write_text(QUERY)
    done = run("db", "build", tmp_path / "q.fasta", "-o", tmp_path / "db.h5", "-q")
    assert done.returncode == 0, done.stderr
    return tmp_path / "q.fasta", tmp_path / "db.h5"


@pytest.mark.parametrize("words", [["search"], ["msa", "-o", "rows"]], ids=lambda words: words[0])
def test_what_does_not_go_with_a_cluster(files, words, tmp_path):
    fasta, database = files

    def refused(*more):
        return run(*words, fasta, database, "--engine", "cpu", *more, cwd=tmp_path)

    fails(refused("--cluster", "local:2", "--device", 0), 1, "--device: got", "expected none with --cluster")
    fails(
        refused("--cluster", "tcp://127.0.0.1:1", "--threads", 1), 1,
        "--threads: got 1, expected none with --cluster tcp://127.0.0.1:1; set the threads when you start the "
        "workers",
    )  # fmt: skip
    fails(refused("--task-timeout", 5), 1, "--task-timeout: got 5.0, expected none without --cluster")
    fails(
        refused("--cluster", "local:2", "--task-timeout", 0), 1, "--task-timeout: got 0.0, expected a number of sec"
    )
    fails(
        refused("--cluster", "somewhere"), 1, "--cluster: got 'somewhere', expected the address of a Dask scheduler"
    )
    done = run(*words, fasta, fasta, "--cluster", "local:2", "--engine", "cpu", cwd=tmp_path)
    fails(
        done,
        1,
        "q.fasta: got no database file, expected one that all workers can read; build it with swsearch db build",
    )
