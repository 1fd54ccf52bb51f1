import errno
import os
from pathlib import Path

import pytest

from swsearch.errors import OutputError
from swsearch.output_files import open_output, open_outputs, umask


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    target = tmp_path / "hits.tsv"
    with open_output(str(target)) as stream:
        stream.write("é\n")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "é\n"
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask()


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


def test_a_device_is_written_straight():
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
