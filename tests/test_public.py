import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import swsearch

ROOT = Path(__file__).resolve().parent.parent

LIMIT = 13
"""The package shows at most this many public names: what a search takes and gives, here and, by `Client`, there."""


def test_public_names_exist_and_have_docstrings():
    assert len(swsearch.__all__) <= LIMIT
    for name in swsearch.__all__:
        assert getattr(swsearch, name).__doc__, name
    assert set(swsearch.__all__) <= set(dir(swsearch))
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        _ = swsearch.serach  # type: ignore[attr-defined]


def test_importing_is_cheap_and_needs_no_gpu():
    code = "import sys, swsearch; print(sorted(set(sys.modules) & {'numpy', 'h5py', 'Bio', 'pycuda', 'parasail'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_needs_none_of_the_heavy_modules():
    code = (
        "import sys\nfrom swsearch.cli import main as cli\nsys.argv = ['swsearch', '--help']\ntry:\n    cli.main()\n"
        "except SystemExit: pass\nprint(sorted(set(sys.modules) & {'numpy', 'h5py', 'Bio', 'pycuda', 'parasail'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_the_version_needs_no_command():
    code = (
        "import sys\nfrom swsearch.cli import main as cli\nsys.argv = ['swsearch', '--version']\ncli.main()\n"
        "from swsearch.cli.main import COMMANDS\n"
        "print({place.partition(':')[0] for place in COMMANDS.values()} & set(sys.modules) - {'swsearch.cli.main'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["swsearch 0.1.0", "set()"]


def test_a_search_imports_no_other_command_and_nothing_that_it_does_not_use(tmp_path):
    (tmp_path / "in.fasta").write_text(">a\nMKVLAAGIVGLLLAQPSFAQ\n>b\nWWPPWWPP\n")
    line = ["swsearch", "search", "in.fasta", "in.fasta", "--engine", "cpu", "--max-hits", "1", "-o", "out.tsv"]
    code = (
        f"import sys\nfrom swsearch.__main__ import main\nsys.argv = {line}\ntry:\n    main()\n"
        "except SystemExit as end: print(end.code)\nprint(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    code, modules = done.stdout.splitlines()
    assert code == "0"
    assert len((tmp_path / "out.tsv").read_text().splitlines()) == 2
    commands = ["align", "bench", "database", "doctor", "msa", "serve"]
    other = {f"swsearch.cli.{name}" for name in commands}
    other |= {f"swsearch.{name}" for name in ("bench", "cluster", "engines.gpu.engine", "plots", "remote.client")}
    other |= {"swsearch.server"}
    other |= {
        "swsearch.profiles.pssm",
        "swsearch.profiles.json_profile",
    }  # for --save-profile and profiles that are read
    other |= {"numpy.ma", "h5py", "Bio", "dask", "fastapi", "httpx", "matplotlib", "pyarrow", "rich"}
    assert set(modules.split()) & other == set()
    assert "swsearch.cli.search" in modules.split()


def test_the_functions_are_not_hidden_by_modules():
    from swsearch.pipeline import search  # noqa: F401

    assert callable(swsearch.search)
    assert callable(swsearch.align)
    assert callable(swsearch.score)


EXAMPLES = {
    "swsearch": swsearch,
    **{name: getattr(swsearch, name) for name in swsearch.__all__ if name != "SwsearchError"},
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_public_docstrings_have_examples_that_run(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    tests = doctest.DocTestFinder(recurse=False).find(EXAMPLES[name], name, globs={"swsearch": swsearch})
    assert tests[0].examples
    assert doctest.DocTestRunner().run(tests[0]).failed == 0
