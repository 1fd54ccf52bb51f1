"""The C++ part, which setup.cfg cannot describe; everything else stands there.

The extension is optional: where it cannot be compiled, the installation goes on, and numpy does its work.
"""

from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
SOURCES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cpu").glob("*.cpp"))
HEADERS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cpu").glob("*.hpp"))

setup(
    ext_modules=[
        Extension(
            "swsearch._simd",
            SOURCES,
            depends=HEADERS,
            language="c++",
            # lanes outside a tile may wrap; what they hold is never read
            extra_compile_args=["-std=c++17", "-O3", "-fwrapv", "-fvisibility=hidden", "-Wall", "-Wextra"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
