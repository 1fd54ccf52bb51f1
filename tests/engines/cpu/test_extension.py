"""Which instruction set the extension uses, how one is forced, and what an installation without it says."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swsearch import extension
from swsearch.alphabet import PROTEIN
from swsearch.engines.cpu import tracing
from swsearch.errors import EngineError, OptionError
from swsearch.recurrence import Recurrence
from swsearch.scoring import Scoring


def test_the_widest_is_the_default(monkeypatch):
    monkeypatch.delenv(extension.SIMD_VARIABLE, raising=False)
    assert extension.active_instruction_set() == extension.instruction_sets()[0]
    assert extension.instruction_sets()[-1] == "scalar"
    assert set(extension.instruction_sets()) <= set(extension.known_instruction_sets())
    assert ("neon" in extension.instruction_sets()) == (platform.machine() in ("aarch64", "arm64"))


@pytest.mark.skipif(sys.platform != "linux", reason="asks for ELF sections")
def test_the_extension_has_no_debug_data():
    """Python's own flags have -g: it was 11 MB, and is 1.5."""
    binary = Path(extension.load().__file__).read_bytes()
    assert binary.startswith(b"\x7fELF") and len(binary) < 4e6
    assert b".debug_info" not in binary and b".symtab" not in binary


@pytest.mark.skipif(
    not (Path("/proc/cpuinfo").exists() and platform.machine() == "x86_64"), reason="asks Linux on x86-64"
)
def test_those_of_this_machine_are_those_that_the_kernel_lists():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = set(next(line for line in lines if line.startswith("flags")).split(":")[1].split())
    widest = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
    needs = {
        "scalar": set(),
        "sse41": {"ssse3", "sse4_1"},
        "avx2": {"avx2"},
        "avx512bw": widest,
        "avx512vbmi": {*widest, "avx512vbmi"},
    }
    assert set(extension.instruction_sets()) == {name for name, needed in needs.items() if needed <= flags}


def test_every_one_of_this_machine_can_be_forced(monkeypatch):
    for name in extension.instruction_sets():
        monkeypatch.setenv(extension.SIMD_VARIABLE, f" {name} ")
        assert extension.active_instruction_set() == name
    for automatic in ("", "auto"):
        monkeypatch.setenv(extension.SIMD_VARIABLE, automatic)
        assert extension.active_instruction_set() == extension.instruction_sets()[0]


@pytest.mark.parametrize("name", ["avx3", "avx512", "off", "baseline", "AVX2"])
def test_an_unknown_one_is_told(name, monkeypatch):
    monkeypatch.setenv(extension.SIMD_VARIABLE, name)
    with pytest.raises(OptionError, match=f"SWSEARCH_SIMD: got '{name}', expected one of auto, scalar, sse41, avx2"):
        tracing.score(PROTEIN.encode("W"), PROTEIN.encode("W"), Recurrence(Scoring(), "local"))


def test_one_that_this_machine_lacks_is_told(monkeypatch):
    lacking = next(name for name in extension.known_instruction_sets() if name not in extension.instruction_sets())
    monkeypatch.setenv(extension.SIMD_VARIABLE, lacking)
    with pytest.raises(OptionError, match=f"got '{lacking}', expected an instruction set of this machine: .*scalar"):
        extension.active_instruction_set()
    with pytest.raises(ValueError, match=f"expected an instruction set that this machine has, got '{lacking}'"):
        extension.load().align(b"", b"", bytes(1024), 0, 0, 0, 1, 15, 1, 1 << 20, 1, 0, 0, lacking)


def test_without_the_extension_the_remedy_is_told(monkeypatch):
    monkeypatch.setattr(extension, "_folders", lambda package: [package / "none"])
    said = r"/swsearch: expected the compiled extension swsearch\.engines\.cpu\._simd here, .*"
    said += r"build it: pip install (-e|swsearch)"
    with pytest.raises(EngineError, match=said):
        extension.load.__wrapped__()


def test_in_a_checkout_that_was_installed_the_installed_one_is_taken(monkeypatch, tmp_path):
    (tmp_path / "swsearch" / "engines" / "cpu").mkdir(parents=True)
    shutil.copy(extension.load().__file__, tmp_path / "swsearch" / "engines" / "cpu" / "_simd.abi3.so")
    (tmp_path / "swsearch-1.dist-info").mkdir()
    (tmp_path / "swsearch-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: swsearch\nVersion: 1\n")
    monkeypatch.setattr(extension, "__file__", str(tmp_path / "checkout" / "swsearch" / "extension.py"))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = extension.load.__wrapped__()
    assert found.__file__.startswith(str(tmp_path))
    assert found.instruction_sets()[0] == ("scalar", True)


def test_what_does_not_compute_does_without_it():
    code = (
        "import swsearch, swsearch.scoring, swsearch.extension\n"
        "swsearch.extension._folders = lambda package: []\n"
        "import swsearch.db\n"
        "from swsearch.cli.main import app\n"
        "try: swsearch.align('MKV', 'MKV', engine='cpu')\n"
        "except swsearch.SwsearchError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "expected the compiled extension" in ran.stdout
