"""The C++ part, which setup.cfg cannot describe; everything else stands there.

The extension is optional: where it cannot be compiled, the installation goes on, and numpy does its work.
"""

import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
SOURCES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cpu").glob("*.cpp"))
HEADERS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cpu").glob("*.hpp"))

# one binary for this Python and every later one; interpreters without the GIL have no stable ABI yet
STABLE_ABI = None if sysconfig.get_config_var("Py_GIL_DISABLED") else ("0x030B0000", "cp311")


class BuildExtension(build_ext):
    """Builds the extension."""

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
            # lanes outside a tile may wrap; what they hold is never read
            extra_compile_args=["-std=c++17", "-O3", "-fwrapv", "-fvisibility=hidden", "-Wall", "-Wextra"],
            extra_link_args=["-pthread"],
            define_macros=[("Py_LIMITED_API", STABLE_ABI[0])] if STABLE_ABI else [],
            py_limited_api=STABLE_ABI is not None,
            optional=True,
        )
    ],
)
