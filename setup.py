"""The C++ part, which setup.cfg cannot describe; everything else stands there."""

import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

ROOT = Path(__file__).resolve().parent
SOURCES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cpu").glob("*.cpp"))
HEADERS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cpu").glob("*.hpp"))

# one binary for this Python and every later one; interpreters without the GIL have no stable ABI yet
STABLE_ABI = None if sysconfig.get_config_var("Py_GIL_DISABLED") else ("0x030B0000", "cp311")


NO_COMPILER = (
    "swsearch was not installed: its C++ extension could not be compiled (why stands above); expected a working "
    "C++17 compiler, g++ 11 or later or clang++, and Python's headers; install them (Debian, Ubuntu: apt install g++ "
    "python3-dev; macOS: xcode-select --install), name another compiler in CC and CXX, or take a prebuilt wheel "
    "(pip install --only-binary swsearch swsearch)"
)


class BuildExtension(build_ext):
    """Builds the extension, and says what is missing where that fails."""

    def run(self) -> None:
        """Build; the last error is one sentence, below the compiler's own."""
        try:
            super().run()
        except (CCompilerError, ExecError, PlatformError):
            raise PlatformError(NO_COMPILER) from None

    def copy_extensions_to_source(self) -> None:
        """Take what is left of earlier builds away: a file for one version of Python would be found first."""
        for path in (ROOT / "swsearch").glob("_simd.*.so"):
            path.unlink()
        super().copy_extensions_to_source()


setup(
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": STABLE_ABI[1]}} if STABLE_ABI else {},
    ext_modules=[
        Extension(
            "swsearch._simd",
            SOURCES,
            depends=HEADERS,
            language="c++",
            # lanes outside a tile may wrap; what they hold is never read. Maxima that are reassociated (gcc) make the
            # scan's chain of dependent instructions longer: 6 % slower
            extra_compile_args=[
                "-std=c++17",
                "-O3",
                "-fwrapv",
                "-fno-tree-reassoc",
                "-fvisibility=hidden",
                "-Wall",
                "-Wextra",
            ],
            extra_link_args=["-pthread"],
            define_macros=[("Py_LIMITED_API", STABLE_ABI[0])] if STABLE_ABI else [],
            py_limited_api=STABLE_ABI is not None,
        )
    ],
)
