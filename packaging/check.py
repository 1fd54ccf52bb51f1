"""Install what `wheels.py` made as users will, run it, and say whether it is fit to be released.

  contents     the source distribution has what git has, and nothing else; wheels have all modules and data files,
               and no sources of C++; `twine check` reads the descriptions
  audits       auditwheel and abi3audit, of every wheel
  source       the source distribution is installed in a new environment, compiled by this machine's compiler
  wheel        the wheel of this machine is installed in a new environment and runs tests of the checkout there
  64-bit Arm   the wheel is installed beside Debian's Python for that architecture, run by qemu-user

`probe.py` searches with each of the three, by every instruction set and against the reference; all must print the
same bytes. What cannot be done here is said, and ends with exit code 2 where --all asks for all of it.

Needs: pip install '.[release]', a C++ compiler; for Arm Debian's qemu-user and apt. About five minutes on two cores.
Run:   python packaging/check.py [--all] [--python python3.13 ...] [dist]
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path

import arm
from wheels import ROOT, TARGETS, PackagingError, call, judge, module

TESTS = (
    "tests/engines/cpu/test_extension.py",
    "tests/engines/cpu/test_tracing.py",
    "tests/engines/test_engines.py",
    "tests/test_blocks.py",
)
"""Run with the installed wheel; they compare engines with the reference, and need no other program."""

FROM_GIT_ALONE = {".gitignore"}
"""Files of a checkout that no distribution has."""

EXAMPLES = [ROOT / "examples" / "data" / name for name in ("queries.fasta", "swissprot_sample.fasta.gz")]


def main() -> int:
    """Check a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("dist"), help="with what wheels.py made [dist]")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="PROGRAM",
        help="another Python to try the wheel with",
    )
    parser.add_argument("--all", action="store_true", help="exit with 2 where anything had to be left out")
    asked = parser.parse_args()
    try:
        left_out = check(asked.folder, asked.python)
    except PackagingError as error:
        print(f"check.py: error: {error}", file=sys.stderr)
        return 1
    for what in left_out:
        print(f"left out: {what}")
    return 2 if left_out and asked.all else 0


def check(folder: Path, pythons: Sequence[str] = ()) -> list[str]:
    """Check what is in a folder, and return what had to be left out."""
    version = version_of_checkout()
    sdist = folder / f"swsearch-{version}.tar.gz"
    wheels = {target: wheel_of(folder, version, target) for target in TARGETS}
    if not sdist.is_file():
        raise PackagingError(f"{sdist}: not there; python packaging/wheels.py makes it")
    left_out = [f"no wheel for {target} in {folder}" for target, wheel in wheels.items() if wheel is None]
    made = {target: wheel for target, wheel in wheels.items() if wheel is not None}
    check_sdist(sdist)
    module("twine", "check", "--strict", sdist, *made.values())
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        for target, wheel in made.items():
            check_contents(wheel)
            (work / target).mkdir()
            print(f"{wheel.name}: {judge(wheel, target, work / target)}", flush=True)
        printed = {"source": probe(new_environment(work / "source", sdist))}
        here = platform.machine()
        if here in made:
            python = new_environment(work / "wheel", made[here])
            printed[f"wheel, {here}"] = probe(python)
            run_tests(python, work / "tests")
            for number, program in enumerate(pythons):
                printed[f"wheel, {program}"] = probe(new_environment(work / f"other{number}", made[here], program))
        other = made.get("aarch64") if here != "aarch64" else None
        if other is not None and (lacking := arm.missing()):
            left_out.append(f"the wheel for aarch64 was not run: no {', '.join(lacking)} here")
        elif other is not None:
            printed["wheel, aarch64 under qemu"] = probe_arm(other, work / "arm")
    if len(set(printed.values())) > 1:
        raise PackagingError(f"the same searches print different bytes: {printed}")
    print(f"equal bytes: {'; '.join(printed)}")
    return left_out


def version_of_checkout() -> str:
    """Return the version that setup.cfg states."""
    return read_setup()["metadata"]["version"]


def read_setup() -> ConfigParser:
    """Read setup.cfg."""
    read = ConfigParser()
    read.read(ROOT / "setup.cfg", encoding="utf-8")
    return read


def wheel_of(folder: Path, version: str, target: str) -> Path | None:
    """Find the wheel of an architecture."""
    return next(iter(sorted(folder.glob(f"swsearch-{version}-cp311-abi3-*_{target}.whl"))), None)


def check_sdist(sdist: Path, *more: str) -> None:
    """Raise `PackagingError` unless a source distribution has the files of git, and what setuptools adds.

    Parameters
    ----------
    sdist : Path
        The file.
    *more : str
        Words for ``git ls-files``, which is asked for what is tracked.
    """
    asked = subprocess.run(["git", "-C", ROOT, "ls-files", *more], capture_output=True, text=True, check=False)
    with tarfile.open(sdist) as packed:
        held = {member.name.partition("/")[2] for member in packed if member.isfile()}
    strays = {name for name in held if name != "PKG-INFO" and not name.startswith("swsearch.egg-info/")}
    if asked.returncode:
        print(f"left out: {ROOT} is not a checkout of git, whose files are not compared")
        return
    tracked = {name for name in asked.stdout.splitlines() if (ROOT / name).exists()} - FROM_GIT_ALONE
    if strays != tracked:
        raise PackagingError(
            f"{sdist.name}: expected the files of git; it has {sorted(strays - tracked)} besides, and lacks "
            f"{sorted(tracked - strays)}: MANIFEST.in says what goes in"
        )


def expected_files() -> set[str]:
    """Return what a wheel must have, besides the extension: modules, and data files that setup.cfg names."""
    setup = read_setup()
    homes = dict(line.split(" = ") for line in setup["options"]["package_dir"].split("\n") if line)
    expected = set()
    for package in setup["options"]["packages"].split():
        folder = ROOT / homes.get(package, package.replace(".", "/"))
        patterns = ["*.py", *setup["options.package_data"].get(package, "").replace(",", " ").split()]
        for path in (path for pattern in patterns for path in folder.glob(pattern)):
            expected.add(f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}")
    return expected


def check_contents(wheel: Path) -> None:
    """Raise `PackagingError` unless a wheel has every module and data file, and nothing that was not meant."""
    with zipfile.ZipFile(wheel) as packed:
        held = {name for name in packed.namelist() if not name.endswith("/")}
    own = {name for name in held if ".dist-info/" not in name}
    expected = expected_files() | {"swsearch/engines/cpu/_simd.abi3.so"}
    if own != expected:
        raise PackagingError(
            f"{wheel.name}: has {sorted(own - expected)} besides, and lacks {sorted(expected - own)}"
        )


def new_environment(folder: Path, package: Path, program: str = sys.executable) -> Path:
    """Make an environment of a Python with a package in it, and return its Python."""
    call(program, "-m", "venv", folder)
    python = folder / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", package.resolve(), cwd=folder)
    return python


def probe(python: Path) -> str:
    """Run probe.py with an environment's Python, and return what it found."""
    return digests(call(python, ROOT / "packaging" / "probe.py", *EXAMPLES, cwd=python.parent))


def digests(printed: str) -> str:
    """Show what probe.py printed, and return the digests alone."""
    print(printed.rstrip(), flush=True)
    return "\n".join(line for line in printed.splitlines() if not line.startswith("#"))


def probe_arm(wheel: Path, work: Path) -> str:
    """Run probe.py with a wheel for 64-bit Arm, under the emulator."""
    root = arm.unpack_python(work)
    arm.install(wheel.resolve(), root, work / "site")
    return digests(arm.run(root, work / "site", [ROOT / "packaging" / "probe.py", *EXAMPLES]))


def run_tests(python: Path, folder: Path) -> None:
    """Run tests of the checkout, which are copied, with an environment's Python."""
    call(python, "-m", "pip", "install", "--quiet", "pytest", "pytest-xdist", "hypothesis", cwd=python.parent)
    folder.mkdir()
    call("cp", "-R", *(ROOT / name for name in ("tests", "setup.cfg", "setup.py", "cpu", "examples")), folder)
    printed = call(python.parent / "pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=folder)
    print(f"tests with the wheel: {printed.splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
