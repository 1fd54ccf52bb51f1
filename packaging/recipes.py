"""Write the version of setup.cfg, and the hash of a source distribution, into bioconda's recipe and CITATION.cff.

Run:   python packaging/recipes.py [--sdist dist/swsearch-VERSION.tar.gz]
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

META = ROOT / "packaging" / "bioconda" / "swsearch" / "meta.yaml"

VERSIONS = {
    META: r'(set version = ")([^"]+)(")',
    ROOT / "CITATION.cff": r"(?m)(^version: )(\S+)()",
}
"""Files and patterns of the version. setup.cfg is its source, from which all are written."""

HASH = r'(set sha256 = ")([0-9a-f]+)(")'


def main() -> int:
    """Write the recipe."""
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


def version() -> str:
    """Return the version: setup.cfg states it, and nothing else does."""
    read = ConfigParser()
    read.read(ROOT / "setup.cfg", encoding="utf-8")
    return read["metadata"]["version"]


def stated_versions() -> dict[str, set[str]]:
    """Return the versions that each file states."""
    return {
        path.relative_to(ROOT).as_posix(): {
            found[1] for found in re.findall(pattern, path.read_text(encoding="utf-8"))
        }
        for path, pattern in VERSIONS.items()
    }


if __name__ == "__main__":
    sys.exit(main())
