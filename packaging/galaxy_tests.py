"""Run the tests that Galaxy's tool holds, without Galaxy: fill its command in, run it, and compare what comes out.

Galaxy's own libraries read the tool and compare; the command is filled in by Cheetah, with the values that Galaxy
would give it: strings, the empty one for what is left out, and files that know their type.

Needs: planemo's environment (galaxy-tool-util and CT3), and swsearch in PATH. `lint.py` starts it.
Run:   python packaging/galaxy_tests.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")  # of the libraries'

from Cheetah.Template import Template  # noqa: E402
from galaxy.tool_util.loader import load_tool  # noqa: E402
from galaxy.tool_util.parser import get_tool_source  # noqa: E402
from galaxy.tool_util.verify import verify  # noqa: E402

FOLDER = Path(__file__).resolve().parent / "galaxy"

TOOL = FOLDER / "swsearch_search.xml"

DATA = FOLDER / "test-data"


class File(str):
    """A file's path, as a command sees it."""

    kind: str
    """Galaxy's name of its type."""

    def is_of_type(self, *kinds: str) -> bool:
        """Say whether it is of one of some types."""
        return self.kind in kinds


def main() -> int:
    """Run every test."""
    root = load_tool(str(TOOL)).getroot()
    tests = get_tool_source(str(TOOL)).parse_tests_to_dict()["tests"]
    assert tests, f"{TOOL} has no tests"
    for number, test in enumerate(tests, start=1):
        with tempfile.TemporaryDirectory() as folder:
            values = defaults(root.find("inputs"))
            for given in test["inputs"]:
                put(values, given["name"].split("|"), given)
            run(root.find("command").text, values, Path(folder))
            for output in test["outputs"]:
                content = (Path(folder) / output["name"]).read_bytes()
                verify(
                    f"test {number}", content, output["attributes"], filename=output["value"], get_filename=in_data
                )
    print(f"{len(tests)} tests of {TOOL.name} passed")
    return 0


def in_data(name: str) -> str:
    """Return the path of a file that tests compare with."""
    return str(DATA / name)


def defaults(element: Any) -> dict[str, Any]:
    """Return the values of all parameters that a test does not name."""
    found: dict[str, Any] = {}
    for child in element:
        if child.tag == "param":
            found[name_of(child)] = default(child)
        elif child.tag == "section":
            found[child.get("name")] = defaults(child)
        elif child.tag == "conditional":
            inner = defaults(child)  # the parameter that decides
            for case in child.findall("when"):
                inner |= defaults(case)
            found[child.get("name")] = inner
    return found


def name_of(parameter: Any) -> str:
    """Return a parameter's name, which its option may say."""
    return str(parameter.get("name") or parameter.get("argument").lstrip("-").replace("-", "_"))


def default(parameter: Any) -> str:
    """Return what a parameter is where nothing is said of it."""
    if parameter.get("type") != "select":
        return str(parameter.get("value") or "")
    options = parameter.findall("option")
    chosen = [option.get("value") for option in options if option.get("selected") == "true"]
    return str(chosen[0] if chosen else options[0].get("value"))


def put(values: dict[str, Any], path: list[str], given: dict[str, Any]) -> None:
    """Set a value that a test names; a name that no parameter has is an error."""
    for name in path[:-1]:
        values = values[name]
    if path[-1] not in values:
        raise KeyError(f"{TOOL.name} has no parameter {'|'.join(path)}")
    kind = given["attributes"].get("ftype")
    if kind is None:
        values[path[-1]] = str(given["value"])
    else:
        values[path[-1]] = file = File(DATA / given["value"])
        file.kind = kind


def run(template: str, values: dict[str, Any], folder: Path) -> None:
    """Fill a command in and run it in a folder, as Galaxy does it."""
    command = str(Template(template, searchList=[{**values, "hits": str(folder / "hits")}])).strip()
    done = subprocess.run(
        ["bash", "-c", " ".join(command.split("\n"))], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {command}\n{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
