"""Files of `examples/server/`, and the other container file: what they name exists, and systemd accepts the unit."""

import json
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser

import pytest
from conftest import ROOT

FOLDER = ROOT / "examples" / "server"

CONTAINER_FILES = ("Containerfile", "Containerfile.cuda")

COMMAND_LINE = "../../packaging/Containerfile"
"""That of the command line alone."""

KINDS = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN", "USER", "VOLUME", "WORKDIR"
}  # fmt: skip
"""Instructions of container files that are used here."""

EXPOSURE = 20
"""Tenths of systemd's points, of which 100 is a service without any bounds."""


def text_of(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def instructions(name):
    """Return the instructions of a container file: each its name and what follows, lines joined."""
    text = re.sub(r"^#.*\n", "", text_of(name), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", [*CONTAINER_FILES, "swsearch.service", "server.env"])
def test_every_option_of_the_server_is_real(name):
    help_page = (ROOT / "tests" / "golden" / "help" / "serve.txt").read_text(encoding="utf-8")
    lines = [line for line in text_of(name).splitlines() if re.search(r"ENTRYPOINT|^#   --|ExecStart=", line)]
    named = {option for line in lines for option in re.findall(r"--[a-z][a-z-]+", line)}
    assert named
    assert named <= set(re.findall(r"--[a-z][a-z-]+", help_page))


@pytest.mark.parametrize("name", [*CONTAINER_FILES, COMMAND_LINE])
def test_a_container_file_copies_what_an_installation_needs_and_what_is_there(name):
    copied = [words.split()[:-1] for kind, words in instructions(name) if kind == "COPY" and "--from" not in words]
    paths = {path for each in copied for path in each}
    assert all((ROOT / path).exists() for path in paths)
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    homes = dict(re.findall(r"(\S+) = (\S+)", settings["options"]["package_dir"]))
    packages = settings["options"]["packages"].split()
    assert {homes.get(package, package.partition(".")[0]) for package in packages} <= paths
    assert {"setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "cpu"} <= paths


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*CONTAINER_FILES, COMMAND_LINE])
def test_what_is_copied_is_enough_for_a_distribution(name, tmp_path):
    for kind, words in instructions(name):
        if kind == "COPY" and "--from" not in words:
            for path in words.split()[:-1]:
                if (ROOT / path).is_dir():
                    shutil.copytree(
                        ROOT / path, tmp_path / path, ignore=shutil.ignore_patterns("__pycache__", "*.so")
                    )
                else:
                    shutil.copy(ROOT / path, tmp_path / path)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "egg_info"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    listed = set((tmp_path / "swsearch.egg-info" / "SOURCES.txt").read_text(encoding="utf-8").split())
    needed = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("swsearch/**/*.py", "swsearch/server/templates/*", "swsearch/report/assets/*", "cpu/**/*.cpp",
                        "db/*.py", "cuda/*.cu*")
        for path in ROOT.glob(pattern)
    }  # fmt: skip
    assert needed <= listed


def test_both_containers_run_the_same_server():
    kept = ("USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD")
    cpu, cuda = ([each for each in instructions(name) if each[0] in kept] for name in CONTAINER_FILES)
    assert cpu == cuda
    assert [kind for kind, _ in cpu] == list(kept)
    found = dict(cpu)
    user, _, group = found["USER"].partition(":")
    assert int(user) == int(group) > 0  # nobody's account but root's
    words = json.loads(found["ENTRYPOINT"])
    assert words[:2] == ["swsearch", "serve"]
    assert words[words.index("--port") + 1] == found["EXPOSE"]
    assert words[words.index("--folder") + 1].startswith(found["VOLUME"])


@pytest.mark.parametrize("name", [*CONTAINER_FILES, COMMAND_LINE])
def test_a_container_file_is_well_formed(name):
    parts = instructions(name)
    kinds = [kind for kind, _ in parts]
    assert set(kinds) <= KINDS
    # two images; only arguments may stand before the first, and the second says who runs what
    assert kinds.count("FROM") == 2 and set(kinds[: kinds.index("FROM")]) <= {"ARG"}
    last = dict(parts[len(kinds) - kinds[::-1].index("FROM") :])
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last["USER"])
    assert json.loads(last["ENTRYPOINT"])[0] == "swsearch"
    assert json.loads(last["CMD"]) == ["--help"]
    defined = {words.partition("=")[0] for kind, words in parts if kind == "ARG"}
    assert {each for kind, words in parts if kind == "FROM" for each in re.findall(r"\$\{(\w+)\}", words)} <= defined
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    (extras,) = re.findall(r"'\.\[(.*)\]'", text_of(name))
    assert set(extras.split(",")) <= set(settings["options.extras_require"])
    for words in (words for kind, words in parts if kind == "RUN"):
        assert subprocess.run(["sh", "-n", "-c", words], check=False).returncode == 0, words


@pytest.mark.parametrize("name", CONTAINER_FILES)
def test_the_health_check_asks_as_it_is_written(name):
    (words,) = [json.loads(words.partition("CMD ")[2]) for kind, words in instructions(name) if kind == "HEALTHCHECK"]
    assert words[:2] == ["python", "-c"]
    compile(words[2], "<health>", "exec")
    assert "http://127.0.0.1:8080/api/v1/ready" in words[2]


def unit(tmp_path):
    """Return a copy of the unit, with a program that is there."""
    path = tmp_path / "swsearch.service"
    path.write_text(text_of("swsearch.service").replace("/opt/swsearch/bin/swsearch", "/bin/true"), encoding="utf-8")
    return path


def analyzed(*words):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)


@pytest.mark.exhaustive
def test_systemd_takes_the_unit_and_finds_it_well_bounded(tmp_path):
    path = unit(tmp_path)
    done = analyzed("verify", "--man=no", str(path))
    assert done.returncode == 0, done.stderr
    assert path.name not in done.stderr
    done = analyzed("security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", str(path))
    assert done.returncode == 0, done.stdout


def test_the_unit_reads_the_file_that_stands_beside_it():
    read = dict(re.findall(r"^(\w+)=(.*)$", text_of("server.env"), re.MULTILINE))
    (line,) = re.findall(r"^ExecStart=(.*)$", text_of("swsearch.service"), re.MULTILINE)
    assert set(re.findall(r"\$([A-Z]+)\b", line)) == set(read) == {"DATABASES", "OPTIONS"}
    assert "EnvironmentFile=/etc/swsearch/server.env" in text_of("swsearch.service")
