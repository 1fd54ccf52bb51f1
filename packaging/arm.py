"""A Python for 64-bit Arm from Debian's packages, in a folder, run by qemu-user: nothing of this machine changes.

apt downloads into the folder with lists and a package state of its own, dpkg unpacks, and pip takes the wheels of
that architecture, so that a wheel for Arm can be tried on x86-64.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from wheels import PackagingError, call

EMULATOR = "qemu-aarch64"

PROGRAMS = (EMULATOR, "apt-get", "dpkg")


def missing() -> list[str]:
    """Return the programs that are not here: with any of them missing, nothing can be tried."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def unpack_python(folder: Path) -> Path:
    """Unpack Debian's python3 for 64-bit Arm with all that it needs, and return the root of its file system."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "true",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
    }
    apt = ["apt-get", "-q", "-y", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    call(*apt, "update")
    call(*apt, "--download-only", "install", "python3", "libstdc++6")  # the latter for numpy
    root = folder / "root"
    for package in sorted((folder / "cache" / "archives").glob("*.deb")):
        call("dpkg", "-x", package, root)
    return root


def run(root: Path, site: Path | None, words: Sequence[str | Path]) -> str:
    """Run its Python, with the packages of a folder, and return what it printed."""
    found = sorted((root / "usr" / "bin").glob("python3.[0-9]*"))
    if not found:
        raise PackagingError(f"{root}: Debian's python3 for arm64 has no usr/bin/python3.*")
    path = ["-E", f"PYTHONPATH={site}"] if site else []
    return call(EMULATOR, "-L", root, *path, found[0], *words)


def install(wheel: Path, root: Path, site: Path) -> None:
    """Install a wheel and what it takes, for that Python, into a folder."""
    version = run(root, None, ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 27, 28, 31, 34)]
    call(
        sys.executable, "-m", "pip", "install", "--quiet", "--target", site, "--only-binary", ":all:",
        "--platform=manylinux2014_aarch64", *platforms, f"--python-version={version}", wheel,
    )  # fmt: skip
