"""The C++ part, which setup.cfg cannot describe; everything else stands there."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

ROOT = Path(__file__).resolve().parent
SOURCES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cpu").rglob("*.cpp"))
HEADERS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cpu").rglob("*.hpp"))

# one binary for this Python and every later one; interpreters without the GIL have no stable ABI yet
STABLE_ABI = None if sysconfig.get_config_var("Py_GIL_DISABLED") else ("0x030B0000", "cp311")

# lanes outside a tile may wrap; what they hold is never read. Sums of products are not fused, so that doubles have
# the same last bit on every machine
FLAGS = ["-std=c++17", "-O3", "-fwrapv", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra", "-g0"]
# where the compiler knows them. Maxima that gcc reassociates make the scan's chain of dependent instructions longer:
# 6 % slower; clang leaves them as they are. Nobody looks at the flags of doubles, which would keep loops from vectors
GCC_FLAGS = ["-fno-tree-reassoc", "-fno-trapping-math"]

# -s leaves symbols out, and -g0 above the debug data of Python's own -g: 1.5 MB instead of 11
LINK_FLAGS = ["-pthread", *(["-s"] if sys.platform == "linux" else [])]

NO_COMPILER = (
    "swsearch was not installed: its C++ extension could not be compiled (why stands above); expected a working "
    "C++17 compiler, g++ 11 or later or clang++ 14 or later, and Python's headers; install them (Debian, Ubuntu: apt "
    "install g++ python3-dev; macOS: xcode-select --install), name another compiler in CC and CXX, or take a "
    "prebuilt wheel (pip install --only-binary swsearch swsearch)"
)


class BuildExtension(build_ext):
    """Builds the extension, and says what is missing where that fails."""

    def run(self) -> None:
        """Build; the last error is one sentence, below the compiler's own."""
        try:
            super().run()
        except (CCompilerError, ExecError, PlatformError):
            raise PlatformError(NO_COMPILER) from None

    def build_extensions(self) -> None:
        """Build with the flags that the compiler knows."""
        for extension in self.extensions:
            extension.extra_compile_args += [flag for flag in GCC_FLAGS if self.takes(flag)]
        super().build_extensions()

    def takes(self, flag: str) -> bool:
        """Say whether the compiler takes a flag without a word."""
        compiler = getattr(self.compiler, "compiler_so_cxx", None) or self.compiler.compiler_so
        command = [*compiler, flag, "-fsyntax-only", "-x", "c++", os.devnull]
        try:
            asked = subprocess.run(command, capture_output=True, check=False)
        except OSError:
            return False
        return asked.returncode == 0 and not asked.stderr

    def copy_extensions_to_source(self) -> None:
        """Take what is left of earlier builds away: a file for one version of Python would be found first."""
        for path in (ROOT / "swsearch" / "engines" / "cpu").glob("_simd.*.so"):
            path.unlink()
        super().copy_extensions_to_source()


setup(
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": STABLE_ABI[1]}} if STABLE_ABI else {},
    ext_modules=[
        Extension(
            "swsearch.engines.cpu._simd",
            SOURCES,
            depends=HEADERS,
            language="c++",
            include_dirs=["cpu"],
            extra_compile_args=FLAGS,
            extra_link_args=LINK_FLAGS,
            define_macros=[("Py_LIMITED_API", STABLE_ABI[0])] if STABLE_ABI else [],
            py_limited_api=STABLE_ABI is not None,
        )
    ],
)
