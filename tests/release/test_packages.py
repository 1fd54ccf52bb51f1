"""Checks of wheels and of the source distribution find what is wrong."""

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
    return scripts.expected_files() | {"swsearch/engines/cpu/_simd.abi3.so"}


def test_a_wheel_has_all_that_setup_cfg_names(scripts, tmp_path):
    names = complete(scripts)
    assert {"swsearch/db/building.py", "swsearch/cuda/batch.cu", "swsearch/matrices/BLOSUM62.txt"} <= names
    scripts.check_contents(wheel_with(tmp_path / WHEEL, names | {"swsearch-0.1.0.dist-info/RECORD"}))


@pytest.mark.parametrize(
    ("besides", "lacking", "said"),
    [
        (set(), {"swsearch/db/building.py"}, r"lacks \['swsearch/db/building.py'\]"),
        ({"tests/test_api.py"}, set(), r"has \['tests/test_api.py'\] besides"),
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
