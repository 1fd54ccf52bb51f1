import errno
import sys

import pytest

from swsearch.cli import console
from swsearch.cli.console import command
from swsearch.errors import MemoryLimitError, OutputError


@pytest.mark.parametrize(
    "raised",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError("ZSTD compression failed: Allocation error : not enough memory"),
        ImportError("libarrow.so.2600: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_lack_of_memory_has_many_names(raised, wrapped):
    @command
    def fails():
        if not wrapped:
            raise raised
        try:
            raise raised
        except Exception as error:
            raise OutputError("x.tsv: cannot be written") from error

    with pytest.raises(MemoryLimitError, match="out of memory; use fewer threads") as caught:
        fails()
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("raised", [MemoryLimitError("a pair takes 9 MiB"), OutputError("not enough memory cards")])
def test_what_is_said_better_stays(raised):
    @command
    def fails():
        raise raised

    with pytest.raises(type(raised), match=str(raised)):
        fails()


def test_messages_never_go_to_stdout(monkeypatch, capsys):
    """As print would have it where stderr is closed."""
    monkeypatch.setattr(sys, "stderr", None)
    console.print_message("a message")
    assert capsys.readouterr().out == ""
