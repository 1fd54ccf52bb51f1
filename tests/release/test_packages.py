"""What is checked of wheels and recipes: that it is found, and that linters which are here find nothing."""

import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec

import pytest
from conftest import ROOT

WHEEL = "swsearch-0.1.0-cp311-abi3-manylinux_2_17_x86_64.whl"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import check

    return check


def wheel_with(path, names):
    with zipfile.ZipFile(path, "w") as made:
        for name in sorted(names):
            made.writestr(name, "")
    return path


def complete(scripts):
    pages = {f"swsearch-0.1.0.data/data/share/man/man1/{path.name}" for path in (ROOT / "docs" / "man").glob("*.1")}
    return scripts.expected_files() | {"swsearch/engines/cpu/_simd.abi3.so"} | pages


def test_a_wheel_has_all_that_setup_cfg_names(scripts, tmp_path):
    names = complete(scripts)
    assert {"swsearch/db/building.py", "swsearch/cuda/batch.cu", "swsearch/matrices/BLOSUM62.txt"} <= names
    scripts.check_contents(wheel_with(tmp_path / WHEEL, names | {"swsearch-0.1.0.dist-info/RECORD"}))


@pytest.mark.parametrize(
    ("besides", "lacking", "said"),
    [
        (set(), {"swsearch/db/building.py"}, r"lacks \['swsearch/db/building.py'\]"),
        ({"tests/test_api.py"}, set(), r"has \['tests/test_api.py'\] besides"),
        (set(), {"swsearch-0.1.0.data/data/share/man/man1/swsearch.1"}, "expected the manual pages"),
        ({"swsearch/engines/cpu/_simd.cpython-311-x86_64-linux-gnu.so"}, set(), "besides"),
    ],
)
def test_what_a_wheel_lacks_or_has_besides_is_told(scripts, besides, lacking, said, tmp_path):
    from wheels import PackagingError

    wheel = wheel_with(tmp_path / WHEEL, (complete(scripts) | besides) - lacking)
    with pytest.raises(PackagingError, match=said):
        scripts.check_contents(wheel)


@pytest.mark.parametrize(
    "name",
    ["swsearch-0.1.0-cp311-cp311-manylinux_2_17_x86_64.whl", "swsearch-0.1.0-cp311-abi3-linux_x86_64.whl", WHEEL],
)
def test_a_wheel_of_other_tags_is_refused(scripts, name, tmp_path):
    from wheels import PackagingError, judge

    target = "aarch64" if name == WHEEL else "x86_64"
    with pytest.raises(PackagingError, match=f"expected tags cp311-abi3 and manylinux_2_17_{target}"):
        judge(tmp_path / name, target, tmp_path)


def test_a_missing_tool_is_named(scripts):
    from wheels import PackagingError, check_tools

    with pytest.raises(PackagingError, match=r"no_such_tool not found; install with: pip install '.\[release\]'"):
        check_tools(["pip", "no_such_tool"])


@pytest.mark.exhaustive
def test_the_source_distribution_has_the_files_of_git(scripts, tmp_path):
    if find_spec("setuptools") is None:
        pytest.skip("needs setuptools")
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git")
    words = ["-q", "egg_info", "--egg-base", tmp_path, "sdist", "--dist-dir", tmp_path / "dist"]
    subprocess.run([sys.executable, "setup.py", *words], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = (tmp_path / "dist").iterdir()
    with tarfile.open(sdist) as packed:
        assert not [name for name in packed.getnames() if name.endswith((".so", ".h5", ".pyc", ".orig"))]
    scripts.check_sdist(sdist, "--cached", "--others", "--exclude-standard")  # new files are yet to be added


@pytest.mark.exhaustive
def test_the_recipe_for_bioconda_keeps_the_rules(monkeypatch):
    pytest.importorskip("yaml")
    pytest.importorskip("jinja2")
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import lint
    import recipes

    said = list(lint.lint_bioconda())
    assert [line for line in said if not line.startswith(("ok:", "later:"))] == []
    broken = recipes.rendered("linux-64", "3.11")
    broken["requirements"]["run"].append("gcc>=3")
    broken["source"]["git_url"] = "x"
    del broken["build"]["run_exports"], broken["about"]["home"]
    rules = {rule for rule, found in lint.bioconda_rules(broken).items() if found}
    assert rules - set(lint.LATER) == {
        "missing_home",
        "missing_run_exports",
        "uses_vcs_url",
        "version_constraints_missing_whitespace",
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["galaxy", "nf-core"])
def test_their_own_linters_find_nothing_where_they_are_installed(name, monkeypatch):
    pytest.importorskip("yaml")
    command = [sys.executable, ROOT / "packaging" / "lint.py", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout.startswith(f"{name}: left out: {'planemo' if name == 'galaxy' else name} is not here"):
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout
