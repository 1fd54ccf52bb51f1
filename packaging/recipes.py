"""Bring the version of setup.cfg, and the hash of a source distribution, into all recipes; and read them.

Needs: pip install jinja2 pyyaml to read them.
Run:   python packaging/recipes.py [--sdist dist/swsearch-VERSION.tar.gz]
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

FOLDER = ROOT / "packaging"

META = FOLDER / "bioconda" / "swsearch" / "meta.yaml"

GALAXY = FOLDER / "galaxy"

MODULES = FOLDER / "nf-core" / "modules"

MODULE = "swsearch/search"

MODULE_FOLDER = MODULES / "nf-core" / MODULE

CONDA_NAMES = {"zstandard": "python-zstandard"}
"""Packages of PyPI that have another name on conda-forge."""

VERSIONS = {
    META: r'(set version = ")([^"]+)(")',
    GALAXY / "macros.xml": r'(<token name="@TOOL_VERSION@">)([^<]+)(<)',
    MODULE_FOLDER / "environment.yml": r"(bioconda::swsearch=)(\S+)()",
    MODULE_FOLDER / "main.nf": r"(/swsearch:)([^-]+)(--)",
    ROOT / "CITATION.cff": r"(?m)(^version: )(\S+)()",
}
"""Where the version stands, besides setup.cfg; all of it is written from there."""

HASH = r'(set sha256 = ")([0-9a-f]+)(")'


def main() -> int:
    """Write the recipes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdist", type=Path, help="the source distribution that was put on PyPI")
    asked = parser.parse_args()
    for path, pattern in VERSIONS.items():
        write(path, pattern, version())
    if asked.sdist is not None:
        if asked.sdist.name != f"swsearch-{version()}.tar.gz":
            print(f"recipes.py: error: {asked.sdist}: expected swsearch-{version()}.tar.gz", file=sys.stderr)
            return 1
        write(META, HASH, hashlib.sha256(asked.sdist.read_bytes()).hexdigest())
    return 0


def write(path: Path, pattern: str, value: str) -> None:
    """Put a value in its places in a file."""
    before = path.read_text(encoding="utf-8")
    after, count = re.subn(pattern, rf"\g<1>{value}\g<3>", before)
    assert count, f"{path} has no place for {value}"
    if after != before:
        path.write_text(after, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {value}")


def setup() -> ConfigParser:
    """Read setup.cfg."""
    read = ConfigParser()
    read.read(ROOT / "setup.cfg", encoding="utf-8")
    return read


def version() -> str:
    """Return the version: setup.cfg states it, and nothing else does."""
    return setup()["metadata"]["version"]


def stated_versions() -> dict[str, set[str]]:
    """Return the versions that each file states."""
    return {
        path.relative_to(ROOT).as_posix(): {
            found[1] for found in re.findall(pattern, path.read_text(encoding="utf-8"))
        }
        for path, pattern in VERSIONS.items()
    }


def requirements() -> list[str]:
    """Return what swsearch takes, as conda writes it."""
    found = []
    for line in setup()["options"]["install_requires"].split():
        name, versions = re.fullmatch(r"([\w-]+)(>=[\w.]+(?:,<[\w.]+)?)", line).groups()  # type: ignore[union-attr]
        found.append(f"{CONDA_NAMES.get(name, name)} {versions}")
    return found


def rendered(platform: str, python: str) -> dict[str, Any]:
    """Return the recipe for bioconda as conda-build reads it: selectors first, then Jinja, then YAML.

    Parameters
    ----------
    platform : str
        Such as ``linux-64``.
    python : str
        Such as ``3.11``.
    """
    import jinja2
    import yaml

    system, _, machine = platform.partition("-")
    names = {
        "py": int(python.replace(".", "")),
        "linux": system == "linux",
        "osx": system == "osx",
        "unix": True,
        "win": False,
        "aarch64": platform == "linux-aarch64",
        "arm64": platform == "osx-arm64",
        "x86_64": machine == "64",
    }
    lines = []
    for line in META.read_text(encoding="utf-8").splitlines():
        selector = re.search(r"# \[(.+)\]\s*$", line)
        if selector is None or eval(selector[1], {"__builtins__": {}}, names):  # an expression of ours
            lines.append(line)
    text = (
        jinja2.Environment(undefined=jinja2.StrictUndefined)
        .from_string("\n".join(lines))
        .render(
            PYTHON="python",
            compiler=lambda language: f"compiler_{language}",
            stdlib=lambda language: f"stdlib_{language}",
            pin_subpackage=lambda name, max_pin: f"{name} {max_pin}",
        )
    )
    read: dict[str, Any] = yaml.safe_load(text)
    return read


if __name__ == "__main__":
    sys.exit(main())
