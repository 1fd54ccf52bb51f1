"""Separation of instruction sets: code compiled for one stays in its namespace.

The linker keeps one object file's copy of each template and inline function. A copy of ``std::vector::resize`` from
AVX-512 code would serve the whole extension. It could end the process on processors without AVX-512. Current
compilers give such copies the default instruction set; this test removes the dependence on it.
"""

import ast
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.samples import sample

ROOT = Path(__file__).resolve().parents[3]
TARGETED = sorted(path for path in (ROOT / "cpu").rglob("*.cpp") if "pragma GCC target" in path.read_text())
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or not shutil.which("nm") or not COMPILERS,
    reason="needs nm and a C++ compiler for x86-64",
)


def flags():
    """Those of setup.py."""
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "FLAGS":
            return ast.literal_eval(node.value)
    raise AssertionError("setup.py has no FLAGS")


def strays(compiler, source, folder):
    """Compile a file and list its weak symbols outside of swsearch's inner namespaces.

    Without optimization nothing is inlined, so that whatever is called shows.
    """
    made = folder / "object.o"
    subprocess.run([compiler, *flags(), "-O0", "-fPIC", f"-I{ROOT / 'cpu'}", "-c", source, "-o", made], check=True)
    symbols = subprocess.run(["nm", "-C", made], capture_output=True, text=True, check=True).stdout
    weak = re.findall(r"^[0-9a-f]* +[VWu] (.*)$", symbols, re.MULTILINE)
    return [name for name in weak if not re.search(r"^(\S+ )?swsearch::[a-z0-9]+::\w", name)]


def test_the_files_are_found():
    names = {path.stem for path in TARGETED}
    assert names == {"sse41", "avx2", "avx512bw", "avx512vbmi"}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("source", sample(TARGETED, lambda path: path == TARGETED[0]), ids=lambda path: path.stem)
def test_nothing_else_is_left_to_the_linkers_choice(source, compiler, tmp_path):
    assert strays(compiler, source, tmp_path) == []


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "bad",
    sample(
        ["std::vector<short> kept(n); kept.resize(2 * n); return kept.back();", "return std::max(n, 1);"],
        lambda bad: "max" in bad,
    ),
)
def test_a_copy_would_be_seen(bad, compiler, tmp_path):
    text = next(path for path in TARGETED if path.stem == "avx2").read_text()
    broken = text.replace(
        '#include "search/scan_kernel.hpp"', f'#include "search/scan_kernel.hpp"\nint stray(int n) {{ {bad} }}'
    )
    source = tmp_path / "broken.cpp"
    source.write_text("#include <algorithm>\n#include <vector>\n" + broken)
    assert any(name.startswith("std::") or " std::" in name for name in strays(compiler, source, tmp_path))
