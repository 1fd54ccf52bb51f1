import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import swsearch
from swsearch import output_files
from swsearch.errors import OutputError
from swsearch.output_files import TemporaryFile, open_output, open_outputs, remove_stale_files


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    target = tmp_path / "hits.tsv"
    with open_output(str(target)) as stream:
        stream.write("é\n")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "é\n"


def test_files_have_the_permissions_that_the_umask_leaves_and_it_is_never_changed(tmp_path, monkeypatch):
    """For a moment in which one thread had set it to 0, the files of all others were open to everybody."""
    before = os.umask(0o027)
    setting = os.umask
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was set"))
    try:
        (tmp_path / "in.fasta").write_text(">s\nMKVLAAGIVG\n")
        swsearch.Database.build([tmp_path / "in.fasta"], tmp_path / "db.h5").close()
        results = swsearch.search("MKVLAAGIVG", tmp_path / "db.h5", engine="cpu", checkpoint=tmp_path / "kept")
        swsearch.write(results, tmp_path / "hits.tsv")
    finally:
        monkeypatch.undo()
        assert setting(before) == 0o027
    made = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"]
    assert len(made) == 5
    assert {oct(path.stat().st_mode & 0o777) for path in made} == {"0o640"}


def test_a_failed_run_leaves_the_old_file(tmp_path):
    target = tmp_path / "hits.tsv"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), open_output(str(target)) as stream:
        stream.write("new")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["hits.tsv"]


def test_outputs_that_cannot_be(tmp_path):
    for path, message in (
        (tmp_path, "is a directory"),
        (tmp_path / "no" / "hits.tsv", "does not exist; make it first"),
    ):
        with pytest.raises(OutputError, match=message), open_output(str(path)):
            pytest.fail("opened")
    if os.getuid():
        tmp_path.chmod(0o500)
        with pytest.raises(OutputError, match="no permission"), open_output(str(tmp_path / "x")):
            pytest.fail("opened")


def test_a_device_is_written_straight(monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # nobody but root may make files in /dev
    with open_output(os.devnull) as stream:
        stream.write("gone")
    assert Path(os.devnull).is_char_device(), "no file took its place"


def test_several_appear_together(tmp_path):
    targets = [(str(tmp_path / "a.tsv"), False), (str(tmp_path / "b.bin"), True)]
    with open_outputs(targets) as (text, data):
        text.write("a\n")
        data.write(b"\x00b")
        text.close()  # whoever closes early does not publish
        assert not [path for path in tmp_path.iterdir() if not path.name.endswith(".tmp")]
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == [b"a\n", b"\x00b"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_several_fail_together(tmp_path, error):
    (tmp_path / "a.tsv").write_text("old")
    targets = [(str(tmp_path / "a.tsv"), False), (str(tmp_path / "b.bin"), True)]
    expected = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught, open_outputs(targets) as (text, _):
        text.write("new")
        raise error
    assert [path.name for path in tmp_path.iterdir()] == ["a.tsv"]
    assert (tmp_path / "a.tsv").read_text() == "old"
    if expected is OutputError:
        files = f"{tmp_path}/a.tsv, {tmp_path}/b.bin"
        assert str(caught.value) == f"{files}: cannot be written: No space left on device; nothing was left there"


def test_the_second_that_cannot_be_opened_takes_the_first_along(tmp_path):
    targets = [(str(tmp_path / "a.tsv"), False), (str(tmp_path / "no" / "b.tsv"), False)]
    with pytest.raises(OutputError, match="does not exist"), open_outputs(targets):
        pytest.fail("opened")
    assert list(tmp_path.iterdir()) == []


def test_stdout_that_is_closed_early_is_no_success_where_files_are_lost(tmp_path, capsys):
    targets = [(None, False), (str(tmp_path / "a.tsv"), False)]
    with pytest.raises(OutputError, match=r"stdout: its reader ended.*a\.tsv not written"), open_outputs(targets):
        raise BrokenPipeError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BrokenPipeError), open_outputs([(None, False)]):
        raise BrokenPipeError
    assert capsys.readouterr().out == ""


def test_what_cannot_be_opened_leaves_nothing(tmp_path, monkeypatch):
    def no_more(file, binary):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(output_files, "_open", no_more)
    with pytest.raises(OutputError, match="Too many open files"), open_output(str(tmp_path / "hits.tsv")):
        pytest.fail("opened")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from swsearch import output_files
output_files.TemporaryFile(Path(sys.argv[1]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(target):
    """Let a process be killed while it writes a file; return what it leaves."""
    before = set(target.parent.iterdir())
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
    (left,) = set(target.parent.iterdir()) - before
    return left


def test_what_a_killed_process_leaves_is_removed_by_the_next_beside_it(tmp_path):
    left = killed(tmp_path / "old.tsv")
    assert left.name.startswith(".old.tsv.swsearch-")
    with open_output(str(tmp_path / "new.tsv")) as stream:
        assert not left.exists()
        stream.write("new")
    assert [path.name for path in tmp_path.iterdir()] == ["new.tsv"]


def test_what_a_living_process_writes_stays(tmp_path):
    with open_output(str(tmp_path / "a.tsv")) as first:
        first.write("first")
        with open_output(str(tmp_path / "a.tsv")) as second:
            second.write("second")
        assert (tmp_path / "a.tsv").read_text() == "second"
    assert (tmp_path / "a.tsv").read_text() == "first"


def test_what_is_in_doubt_stays(tmp_path):
    """Files of others, whatever they are called, and those of a computer whose locks may not be seen here."""
    computer, start = output_files._machine_and_boot()
    ours = f"swsearch-{computer}-{start}-12345-0123abcd.tmp"
    others = [
        ".hits.tsv.tmp", ".hits.tsv.x1y2z3.tmp", ours, f".{ours}", f".hits.{ours}.bak", "hits.tsv.tmp",
        f".hits.swsearch-{computer}-{start}-12345-0123abcg.tmp",
        f".hits.swsearch-00000000-{start[::-1]}-1-0123abcd.tmp",
        f".hits.swsearch-{computer}-ffffffff-1-0123abcd.tmp",
    ]  # fmt: skip
    for name in others:
        (tmp_path / name).write_text("precious")
    (tmp_path / f".link.{ours}").symlink_to(tmp_path / "hits.tsv.tmp")
    (tmp_path / f".folder.{ours}").mkdir()
    os.mkfifo(tmp_path / f".fifo.{ours}")
    before = sorted(tmp_path.iterdir())
    remove_stale_files(tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_what_another_start_of_this_computer_left_is_removed_if_it_is_older(tmp_path):
    computer, _ = output_files._machine_and_boot()
    old, new = (tmp_path / f".hits.swsearch-{computer}-ffffffff-{number}-0123abcd.tmp" for number in (1, 2))
    for path, time in ((old, output_files._boot_time() - 1), (new, output_files._boot_time() + 1)):
        path.touch()
        os.utime(path, (time, time))
    remove_stale_files(tmp_path)
    assert list(tmp_path.iterdir()) == ([new] if output_files._boot_time() else [old, new])


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give a file to another user")
def test_what_another_user_left_stays(tmp_path):
    left = killed(tmp_path / "hits.tsv")
    os.chown(left, 12345, -1)
    remove_stale_files(tmp_path)
    assert left.exists()


def test_a_file_that_is_taken_for_abandoned_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    """Between its making and its lock another run may remove it, or have it locked to do so."""
    real, turns = output_files.fcntl.flock, []

    def flock(number, how):
        turns.append(number)
        if len(turns) == 1:
            raise BlockingIOError
        if len(turns) == 2:
            for path in tmp_path.iterdir():
                path.unlink()
        real(number, how)

    monkeypatch.setattr(output_files.fcntl, "flock", flock)
    monkeypatch.setattr(output_files, "remove_stale_files", lambda folder: None)
    temporary = TemporaryFile(tmp_path / "hits.tsv")
    assert len(turns) == 3
    temporary.publish(tmp_path / "hits.tsv")
    assert (tmp_path / "hits.tsv").exists()


def test_a_file_system_without_locks_is_written_to_and_nothing_there_is_removed(tmp_path, monkeypatch):
    left = killed(tmp_path / "old.tsv")

    def flock(number, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(output_files.fcntl, "flock", flock)
    with open_output(str(tmp_path / "hits.tsv")) as stream:
        stream.write("x")
    assert {path.name for path in tmp_path.iterdir()} == {"hits.tsv", left.name}


@pytest.mark.parametrize("name", ["x" * 251 + ".tsv", "\u00e9" * 120 + ".tsv", ".hidden", "a b\nc.tsv"])
def test_any_name_has_a_hidden_one(tmp_path, name):
    with open_output(str(tmp_path / name)) as stream:
        stream.write("x")
        (hidden,) = tmp_path.iterdir()
        assert re.fullmatch(r"(?s)\..*\.swsearch-[0-9a-f]{8}-[0-9a-f]{8}-\d+-[0-9a-f]{8}\.tmp", hidden.name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("place", ["_create_locked", "_open"])
def test_a_signal_between_two_lines_leaves_no_file(tmp_path, monkeypatch, place):
    before = getattr(output_files, place)

    def interrupted(*arguments):
        before(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(output_files, place, interrupted)
    monkeypatch.setattr(output_files.TemporaryFile, "discard", lambda self: None)  # as if it had not been reached
    with pytest.raises(KeyboardInterrupt), output_files.open_outputs([(str(tmp_path / "a.tsv"), False)]):
        pass
    assert len(list(tmp_path.iterdir())) == 1
    output_files.remove_unfinished()
    assert not list(tmp_path.iterdir())


def test_finished_files_stay(tmp_path):
    with output_files.open_outputs([(str(tmp_path / "a.tsv"), False)]) as (stream,):
        stream.write("a")
    output_files.remove_unfinished()
    assert [path.name for path in tmp_path.iterdir()] == ["a.tsv"]
