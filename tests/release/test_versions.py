"""One version: setup.cfg states it, and all else that must have it has the same."""

import hashlib
import re
import sys

import pytest
from conftest import ROOT


@pytest.fixture
def recipes(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import recipes

    return recipes


def test_everything_states_the_version_of_setup_cfg(recipes):
    assert re.fullmatch(r"\d+\.\d+\.\d+", recipes.version())
    assert recipes.stated_versions() == {name: {recipes.version()} for name in recipes.stated_versions()}


def test_the_changelog_has_it(recipes):
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(recipes.version())}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE)


def test_a_new_version_and_a_hash_are_written_everywhere(recipes, monkeypatch, tmp_path, capsys):
    copies = {}
    for number, (path, pattern) in enumerate(recipes.VERSIONS.items()):
        copies[tmp_path / f"{number}-{path.name}"] = pattern
        (tmp_path / f"{number}-{path.name}").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(recipes, "ROOT", tmp_path)
    monkeypatch.setattr(recipes, "VERSIONS", copies)
    monkeypatch.setattr(recipes, "META", tmp_path / "0-meta.yaml")
    monkeypatch.setattr(recipes, "version", lambda: "12.3.4")
    (tmp_path / "swsearch-12.3.4.tar.gz").write_bytes(b"packed")
    (tmp_path / "swsearch-12.3.3.tar.gz").write_bytes(b"packed")
    monkeypatch.setattr(sys, "argv", ["recipes.py", "--sdist", str(tmp_path / "swsearch-12.3.4.tar.gz")])
    assert recipes.main() == 0
    assert set(map(frozenset, recipes.stated_versions().values())) == {frozenset({"12.3.4"})}
    hashed = hashlib.sha256(b"packed").hexdigest()
    assert hashed in (tmp_path / "0-meta.yaml").read_text(encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["recipes.py", "--sdist", str(tmp_path / "swsearch-12.3.3.tar.gz")])
    assert recipes.main() == 1
    assert "expected swsearch-12.3.4.tar.gz" in capsys.readouterr().err
