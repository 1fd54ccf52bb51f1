"""Properties that must be equal on a worker and a client."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from swsearch.cluster import messages
from swsearch.cluster.messages import MUST_EQUAL, program_versions, version_mismatch


def test_what_must_be_equal_is_told_and_equals_itself() -> None:
    assert program_versions().keys() == MUST_EQUAL.keys()
    assert len(program_versions()["digest"]) == 64
    assert version_mismatch(program_versions(), program_versions()) == ""


@pytest.mark.parametrize("key", MUST_EQUAL)
def test_each_difference_is_named(key: str) -> None:
    text = version_mismatch({**program_versions(), key: "0123456789"}, program_versions())
    assert text.startswith(MUST_EQUAL[key])
    assert program_versions()[key][:8] in text
    assert ";" not in text


def test_what_a_worker_does_not_tell_differs() -> None:
    assert version_mismatch({}, program_versions()).count("; ") == len(MUST_EQUAL) - 1


def digest_of(monkeypatch: pytest.MonkeyPatch, **folders: Path) -> str:
    monkeypatch.setattr(messages.resources, "files", lambda package: folders[package.rpartition(".")[2]])
    return messages._digest()


@pytest.fixture
def checkout(tmp_path: Path) -> dict[str, Path]:
    """Packages that stand side by side."""
    folders = {name: tmp_path / "checkout" / name for name in ("swsearch", "db", "cuda")}
    for folder in folders.values():
        (folder / "part").mkdir(parents=True)
        for name in ("one.py", "part/two.py", "part-of.py", "table.txt", "kernel.cu"):
            (folder / name).write_bytes(b"x = 1\ny = 2\n")
    return folders


def test_the_digest_is_that_of_the_sources_wherever_they_lie(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checkout: dict[str, Path]
) -> None:
    first = digest_of(monkeypatch, **checkout)
    whole = tmp_path / "installed"
    shutil.copytree(checkout["swsearch"], whole)
    for name in ("db", "cuda"):
        shutil.copytree(checkout[name], whole / name)
    installed = {"swsearch": whole, "db": whole / "db", "cuda": whole / "cuda"}
    assert digest_of(monkeypatch, **installed) == first
    for folder in installed.values():
        (folder / "part" / "__pycache__").mkdir()
        (folder / "part" / "__pycache__" / "two.cpython-311.pyc").write_bytes(b"compiled")
        (folder / "one.py").write_bytes(b"x = 1\r\ny = 2\r\n")
        (folder / ".#one.py").symlink_to("nowhere")
        (folder / ".saved.py").write_bytes(b"x = 3\n")
    assert digest_of(monkeypatch, **installed) == first


@pytest.mark.parametrize("package", ["swsearch", "db", "cuda"])
@pytest.mark.parametrize("name", ["one.py", "part/two.py", "table.txt", "kernel.cu", "part/new.py"])
def test_other_sources_have_another_digest(
    monkeypatch: pytest.MonkeyPatch, checkout: dict[str, Path], package: str, name: str
) -> None:
    first = digest_of(monkeypatch, **checkout)
    (checkout[package] / name).write_bytes(b"x = 1\ny = 3\n")
    theirs = {**program_versions(), "digest": digest_of(monkeypatch, **checkout)}
    assert version_mismatch(theirs, {**program_versions(), "digest": first}).startswith("the sources of swsearch ")
