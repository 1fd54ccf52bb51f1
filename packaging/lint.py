"""Judge the recipes for bioconda, Galaxy and nf-core by their linters, as far as these work without a network.

  bioconda   the recipe is rendered as conda-build does it, for every platform that it names, and must keep the rules
             of `bioconda-utils lint` that ask no server, named as there; what it takes is what setup.cfg states
  galaxy     `planemo lint`, where planemo is installed; the tool's own tests are run without Galaxy: its command is
             filled in from each test's parameters, run, and its output compared, where galaxy-tool-util is installed
  nf-core    `nf-core modules lint`, where nf-core is installed, in a repository made for it. The schemas of
             nf-core/modules are looked at with --nf-core-modules CLONE only. What asks Nextflow or a server, and the
             snapshot that nf-test writes, is listed in `LATER`: it comes with the release

Needs: pip install jinja2 pyyaml; for more, planemo and nf-core (each in an environment of its own: --path).
Run:   python packaging/lint.py [--path FOLDER:...] [--nf-core-modules CLONE] [bioconda] [galaxy] [nf-core]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recipes import GALAXY, META, MODULE, MODULES, ROOT, rendered, requirements

LATER = {
    "missing_hash": "the source distribution is hashed when it is released",
    "bioconda_version": "asks for the released package",
    "docker_tag": "asks Nextflow for the image, which the release of the package makes",
    "singularity_tag": "asks Nextflow for the image, which the release of the package makes",
    "test_snapshot_exists": "nf-test writes the snapshot, with the released package",
}
"""What linters find and cannot be helped before the release."""

PLATFORMS = ("linux-64", "linux-aarch64", "osx-64", "osx-arm64")


def main() -> int:
    """Lint, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["bioconda", "galaxy", "nf-core", []], help="all by default")
    parser.add_argument("--path", default="", help="folders with planemo and nf-core, before those of PATH")
    parser.add_argument("--nf-core-modules", type=Path, help="a clone of nf-core/modules, for its schemas")
    asked = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join(filter(None, (asked.path, os.environ.get("PATH", os.defpath))))
    linters: dict[str, Callable[[], Iterator[str]]] = {
        "bioconda": lint_bioconda,
        "galaxy": lint_galaxy,
        "nf-core": lambda: lint_nf_core(asked.nf_core_modules),
    }
    found = 0
    for name in asked.what or linters:
        for said in dict.fromkeys(linters[name]()):
            print(f"{name}: {said}")
            found += not said.startswith(("left out:", "ok:", "later:"))
    return 1 if found else 0


def lint_bioconda() -> Iterator[str]:
    """Yield what is wrong with the recipe for bioconda, by the names of bioconda's rules."""
    for platform in PLATFORMS:
        for version in ("3.11", "3.13"):
            recipe = rendered(platform, version)
            for rule, broken in bioconda_rules(recipe).items():
                if broken and rule in LATER:
                    yield f"later: {rule}: {LATER[rule]}"
                elif broken:
                    yield f"{rule}: {platform}, Python {version}: {broken}"
    stated, run = requirements(), recipe["requirements"]["run"]
    if sorted(run) != sorted(["python", *stated]):
        yield f"requirements: setup.cfg states {stated}, the recipe {run}"
    if not rendered("linux-64", "3.10")["build"].get("skip"):
        yield "skip: Python 3.10, which setup.cfg excludes, is not skipped"
    yield "ok: rendered for " + ", ".join(PLATFORMS)


def bioconda_rules(recipe: dict[str, Any]) -> dict[str, object]:
    """Return what breaks each rule; nothing that is true breaks it."""
    about, build, needs = recipe["about"], recipe["build"], recipe["requirements"]
    source = recipe["source"]
    everything = [line for section in needs.values() for line in section]
    return {
        "missing_build_number": "number" not in build,
        "missing_home": not about.get("home"),
        "missing_summary": not about.get("summary"),
        "missing_license": not about.get("license") or not about.get("license_file"),
        "long_summary": len(about.get("summary", "")) > 120,
        "missing_tests": not (recipe["test"].get("commands") and recipe["test"].get("imports")),
        "missing_hash": set(source["sha256"]) == {"0"} or not re.fullmatch("[0-9a-f]{64}", source["sha256"]),
        "missing_run_exports": not build.get("run_exports"),
        "uses_vcs_url": [key for key in source if key.endswith("_url")],
        "should_not_use_fn": "fn" in source,
        "folder_and_package_name_must_match": recipe["package"]["name"] != META.parent.name,
        "version_starts_with_v": str(recipe["package"]["version"]).startswith("v"),
        "should_use_compilers": [line for line in everything if line.split()[0] in ("gcc", "gxx", "llvm", "libgcc")],
        "compilers_must_be_in_build": [line for key in ("host", "run") for line in needs[key] if "compiler" in line],
        "compiler_needs_stdlib_c": "stdlib_c" not in needs["build"],
        "uses_setuptools": [line for line in needs["run"] if line.startswith("setuptools")],
        "version_constraints_missing_whitespace": [line for line in everything if re.search(r"\w[<>=]", line)],
        "setup_py_install_args": "setup.py install" in build["script"],
        "should_not_be_noarch_compiler": "noarch" in build,
        "unknown_selector": "# [" in json.dumps(recipe),
    }


def lint_galaxy() -> Iterator[str]:
    """Yield what is wrong with Galaxy's tool."""
    if shutil.which("planemo") is None:
        yield "left out: planemo is not here; pip install planemo, in an environment of its own"
        return
    command = ["planemo", "lint", "--fail_level", "warn", str(GALAXY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wrong = [line for line in done.stdout.splitlines() if line.startswith((".. WARNING", ".. ERROR"))]
    yield from wrong or ([f"planemo ends with {done.returncode}: {done.stderr[-500:]}"] if done.returncode else [])
    if not done.returncode:
        yield f"ok: planemo lint, {done.stdout.count('.. CHECK')} checks"
    yield from run_galaxy_tests()


def run_galaxy_tests() -> Iterator[str]:
    """Run the tool's own tests with the Python of planemo, which has Galaxy's libraries."""
    if shutil.which("swsearch") is None:
        yield "left out: the tool's tests; swsearch is not in PATH"
        return
    with Path(str(shutil.which("planemo"))).open(encoding="utf-8") as script:
        python = script.readline().removeprefix("#!").strip()
    command = [python, str(ROOT / "packaging" / "galaxy_tests.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    yield f"ok: {done.stdout.strip()}" if not done.returncode else f"{done.stdout}{done.stderr}"


def lint_nf_core(clone: Path | None) -> Iterator[str]:
    """Yield what is wrong with nf-core's module."""
    if shutil.which("nf-core") is None or shutil.which("git") is None:
        yield "left out: nf-core is not here; pip install nf-core, in an environment of its own"
        return
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        printed = lint_module(work, clone)
    results = re.findall(r"^swsearch/search (\w+)\n(?:.*\n)+?\n", printed, re.MULTILINE)
    passed = re.search(r"(\d+) Tests? Passed", printed)
    if passed is None:
        yield f"nf-core stopped: {printed[-2000:]}"
        return
    for name in results:
        yield f"later: {name}: {LATER[name]}" if name in LATER else name
    if clone is None:
        yield "left out: the schemas of nf-core/modules; --nf-core-modules CLONE has them"
    yield f"ok: nf-core modules lint, {passed[1]} tests passed"


def lint_module(work: Path, clone: Path | None) -> str:
    """Run nf-core's linter in a repository that holds the module, and return what it printed."""
    repository = work / "modules"
    shutil.copytree(MODULES, repository / "modules")
    (repository / ".nf-core.yml").write_text("repository_type: modules\norg_path: nf-core\n", encoding="utf-8")
    for schema in ("meta-schema.json", "environment-schema.json"):
        if clone is not None:
            shutil.copyfile(clone / "modules" / schema, repository / "modules" / schema)
        else:
            (repository / "modules" / schema).write_text("{}\n", encoding="utf-8")
    git(repository, "init", "--quiet", "--initial-branch", "master")
    git(repository, "add", "--all")
    git(
        repository,
        "-c",
        "user.name=lint",
        "-c",
        "user.email=lint@localhost",
        "commit",
        "--quiet",
        "--message",
        "lint",
    )
    # where the linter keeps its clone of nf-core/modules
    kept = work / "home" / ".config" / "nfcore" / "nf-core" / "modules"
    kept.parent.mkdir(parents=True)
    git(work, "clone", "--quiet", str(repository), str(kept))
    if shutil.which("nextflow") is None:  # asked for the configuration of that repository, which has none
        stand_in = work / "bin" / "nextflow"
        stand_in.parent.mkdir()
        stand_in.write_text("#!/bin/sh\necho '{}'\n", encoding="utf-8")
        stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    variables = {**os.environ, "HOME": str(work / "home"), "XDG_CONFIG_HOME": str(work / "home" / ".config")}
    variables["PATH"] = os.pathsep.join((str(work / "bin"), os.environ["PATH"]))
    command = ["nf-core", "modules", "--no-pull", "lint", "--plain-text", "--dir", ".", MODULE]
    done = subprocess.run(command, cwd=repository, env=variables, capture_output=True, text=True, check=False)
    return f"{done.stdout}\n{done.stderr}"


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
