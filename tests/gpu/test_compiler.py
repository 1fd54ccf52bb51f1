"""The compiler of kernels and its cache; no GPU is needed, and a made-up compiler does where a real one is not."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support import processes
from swsearch.engines.gpu import compiler as module
from swsearch.engines.gpu.compiler import SOURCES, Compiler, Kernel, find_compiler, source_hash
from swsearch.engines.gpu.toolchain import (
    CompilationError,
    Nvcc,
    Nvrtc,
    Toolchain,
    Version,
    nvcc_places,
    nvrtc_places,
)
from swsearch.errors import EngineError, GpuUnavailableError

BATCH = Kernel("batch", (("SWSEARCH_ROWS", 8), ("SWSEARCH_MODE", 0), ("SWSEARCH_QUERIES", 1)))


class Pretender(Toolchain):
    """Makes a "cubin" that names the source and the options, and counts how often it was asked."""

    kind = "pretender"

    def __init__(self, path: str = "/opt/pretender", version: Version = (13, 0)) -> None:
        self.path, self.version = path, version
        self.calls: list[str] = []

    def architectures(self) -> frozenset[str]:
        return frozenset({"sm_80", "sm_90"})

    def options(self, architecture: str) -> list[str]:
        return [f"-arch={architecture}"]

    def compile(self, source: Path, options: Sequence[str]) -> bytes:
        self.calls.append(source.name)
        if "-DSWSEARCH_ROWS=0" in options:
            raise CompilationError("\n".join(f"line {number} of the log" for number in range(1, 31)))
        return hashlib.sha256(source.read_bytes()).digest() + " ".join(options).encode()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a copy of the kernels that a test may change."""
    return Path(shutil.copytree(SOURCES, tmp_path / "sources"))


def make(folder: Path, sources: Path = SOURCES, architecture: str = "sm_90", version: Version = (13, 0)) -> Compiler:
    return Compiler(Pretender(version=version), architecture, sources=sources, cache_folder=folder)


def calls(compiler: Compiler) -> list[str]:
    assert isinstance(compiler.toolchain, Pretender)
    return compiler.toolchain.calls


def test_second_compiler_finds_what_the_first_compiled(tmp_path: Path) -> None:
    first, second = make(tmp_path), make(tmp_path)
    cubin = first.compile(BATCH)
    assert second.compile(BATCH) == cubin
    assert (calls(first), calls(second)) == (["batch.cu"], [])
    assert (first.cache_note, second.cache_note) == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == [f"{first.key(BATCH)}.cubin"]


def test_key_names_everything_a_cubin_is_made_of(sources: Path, tmp_path: Path) -> None:
    keys = {
        "as it is": make(tmp_path).key(BATCH),
        "source": make(tmp_path).key(Kernel("wavefront", BATCH.defines)),
        "defines": make(tmp_path).key(Kernel("batch", (("SWSEARCH_ROWS", 16), *BATCH.defines[1:]))),
        "architecture": make(tmp_path, architecture="sm_80").key(BATCH),
        "compiler's version": make(tmp_path, version=(13, 1)).key(BATCH),
    }
    (sources / "scores.cu").write_text("// another kernel's")
    assert make(tmp_path, sources).key(BATCH) == keys["as it is"]
    for changed in ("batch.cu", "instructions.cuh", "recurrence.cuh"):
        with (sources / changed).open("a") as file:
            file.write("// one more line\n")
        keys[changed] = make(tmp_path, sources).key(BATCH)
    assert len(set(keys.values())) == len(keys), keys


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_damaged_entry_is_compiled_again(damage: str, tmp_path: Path) -> None:
    compiler = make(tmp_path)
    cubin = compiler.compile(BATCH)
    entry = tmp_path / f"{compiler.key(BATCH)}.cubin"
    content = bytearray(entry.read_bytes())
    content[-1] ^= 1
    entry.write_bytes({"truncated": content[:-5], "flipped": content, "empty": b""}[damage])
    assert compiler.compile(BATCH) == cubin
    assert calls(compiler) == ["batch.cu", "batch.cu"]
    assert make(tmp_path).compile(BATCH) == cubin
    assert entry.read_bytes() == hashlib.sha256(cubin).digest() + cubin


def test_folder_that_cannot_be_written_only_means_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")  # fails for root too, whom permissions do not stop
    compiler = make(tmp_path / "file" / "kernels")
    assert compiler.compile(BATCH) == compiler.compile(BATCH)
    assert calls(compiler) == ["batch.cu", "batch.cu"]
    assert compiler.cache_note.startswith("kernels are not cached: ")
    assert str(tmp_path / "file") in compiler.cache_note
    assert "SWSEARCH_CACHE" in compiler.cache_note


def test_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    compiler = make(tmp_path)
    assert compiler.compile(BATCH)
    assert list(tmp_path.iterdir()) == []
    assert "No space left on device" in compiler.cache_note


def test_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("SWSEARCH_CACHE", str(tmp_path / "own"))
    assert Compiler(Pretender(), "sm_90").cache_folder == tmp_path / "own" / "kernels"
    monkeypatch.setenv("SWSEARCH_CACHE", "")
    assert Compiler(Pretender(), "sm_90").cache_folder == tmp_path / "xdg" / "swsearch" / "kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert Compiler(Pretender(), "sm_90").cache_folder == tmp_path / "home" / ".cache" / "swsearch" / "kernels"


def test_all_are_compiled_in_order_and_equal_ones_once(tmp_path: Path) -> None:
    kernels = [Kernel("batch", (("SWSEARCH_ROWS", rows),)) for rows in (8, 24, 16, 8)]
    compiler = make(tmp_path)
    cubins = compiler.compile_all(kernels)
    assert cubins == [make(tmp_path).compile(kernel) for kernel in kernels]
    assert len(set(cubins)) == 3
    assert len(calls(compiler)) == 3
    assert compiler.compile_all([]) == []


def test_two_processes_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path; import test_compiler as t\n"
        "for turn in range(100):\n"
        "    compiler = t.make(Path(sys.argv[1]))\n"
        "    compiler._write_entry(compiler._entry(t.BATCH), compiler._compile(t.BATCH))\n"
        "    compiler.compile(t.BATCH)\n"
        "    assert t.calls(compiler) == ['batch.cu'], 'read a broken entry'\n"
        "    assert not compiler.cache_note, compiler.cache_note\n"
    )
    line = [sys.executable, "-c", program, str(tmp_path), *map(str, Path(__file__).parents[:2])]
    with processes.started(line) as one, processes.started(line) as other:
        errors = [process.communicate(timeout=60)[1].decode() for process in (one, other)]
        assert [process.returncode for process in (one, other)] == [0, 0], errors
    afterwards = make(tmp_path)
    assert len(afterwards.compile(BATCH)) > 32
    assert calls(afterwards) == []
    assert len(list(tmp_path.iterdir())) == 1


def test_refused_source_says_which_kernel_compiler_and_why(tmp_path: Path) -> None:
    compiler = make(tmp_path)
    with pytest.raises(EngineError) as caught:
        compiler.compile(Kernel("batch", (("SWSEARCH_ROWS", 0),)))
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "kernel batch(ROWS=0): pretender 13.0 (/opt/pretender) does not compile it for sm_90; "
        "use --engine cpu, and report this:"
    )
    assert lines[1] == "line 1 of the log"
    assert lines[-2:] == ["line 12 of the log", "... and 18 lines more"]
    assert list(tmp_path.iterdir()) == []


def offer(monkeypatch: pytest.MonkeyPatch, kind: str, *versions: Version) -> None:
    """Let the search find pretenders of these versions."""
    places = {f"/opt/{kind.lower()}-{major}.{minor}": (major, minor) for major, minor in versions}
    monkeypatch.setattr(module, f"{kind.lower()}_places", lambda: list(places))
    found = type(
        kind,
        (Pretender,),
        {"kind": kind, "__init__": lambda self, path: Pretender.__init__(self, path, places[path])},
    )
    monkeypatch.setattr(module, kind.capitalize(), found)


@pytest.mark.parametrize(
    ("nvrtc", "nvcc", "driver", "expected"),
    [
        ([(12, 8), (13, 0), (13, 5)], [(13, 0)], (13, 0), "Nvrtc 13.0"),
        ([(12, 8), (13, 2), (13, 5)], [(13, 0)], (13, 3), "Nvrtc 13.2"),
        ([(13, 2), (13, 5)], [(13, 0)], (13, 0), "Nvrtc 13.2"),
        ([(12, 8), (13, 5)], [], (13, 0), "Nvrtc 12.8"),
        ([(13, 5), (13, 2), (12, 9)], [], (13, 1), "Nvrtc 12.9"),
        ([(12, 9), (13, 0)], [], (13, 1), "Nvrtc 13.0"),
        ([(12, 8), (13, 5)], [], (12, 4), "Nvrtc 12.8"),
        ([(13, 5)], [(12, 6), (12, 9)], (12, 9), "Nvcc 12.9"),
        ([(11, 8)], [(13, 0)], (13, 0), "Nvcc 13.0"),
        ([(12, 8), (13, 5), (13, 0)], [], None, "Nvrtc 13.5"),
        ([(13, 0)], [], (14, 1), "Nvrtc 13.0"),
    ],
)
def test_choice_suits_the_driver(
    nvrtc: list[Version],
    nvcc: list[Version],
    driver: Version | None,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, "Nvrtc", *nvrtc)
    offer(monkeypatch, "Nvcc", *nvcc)
    assert find_compiler("sm_90", driver).description == expected


@pytest.mark.parametrize(
    ("driver", "architecture", "refusal", "package"),
    [
        (
            (12, 4),
            "sm_90",
            "Nvrtc 13.0 at /opt/nvrtc-13.0 (the driver loads kernels up to CUDA 12)",
            "nvidia-cuda-nvrtc-cu12,",
        ),
        ((13, 0), "sm_75", "Nvrtc 13.0 at /opt/nvrtc-13.0 (does not know sm_75)", "nvidia-cuda-nvrtc,"),
        (None, "sm_75", "Nvcc 11.8 at /opt/nvcc-11.8 (older than 12.0)", "nvidia-cuda-nvrtc,"),
    ],
)
def test_no_suitable_compiler(
    driver: Version | None, architecture: str, refusal: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, "Nvrtc", (13, 0))
    offer(monkeypatch, "Nvcc", (11, 8))
    with pytest.raises(GpuUnavailableError) as caught:
        find_compiler(architecture, driver)
    message = str(caught.value)
    assert message.startswith(f"no CUDA compiler for {architecture}")
    assert refusal in message
    assert f"pip install {package}" in message


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libnvrtc.so.13").write_text("not a library")
    monkeypatch.setattr(module, "nvrtc_places", lambda: [str(tmp_path / "libnvrtc.so.13"), "libnvrtc.so.nowhere"])
    monkeypatch.setattr(module, "nvcc_places", lambda: [])
    monkeypatch.setattr(module, "SONAMES", ("libnvrtc.so.nowhere",))
    with pytest.raises(
        GpuUnavailableError, match=r"libnvrtc in pip's NVIDIA packages.* nvcc on PATH.*CUDA toolkit"
    ) as caught:
        find_compiler("sm_90", (13, 0))
    assert f"found {tmp_path / 'libnvrtc.so.13'} (" in str(caught.value)
    assert "nowhere" not in str(caught.value)
    assert caught.value.exit_code == 7


def test_source_hash_is_that_of_all_sources() -> None:
    files = sorted(path for path in SOURCES.iterdir() if path.suffix in {".cu", ".cuh"})
    assert {"batch.cu", "instructions.cuh", "recurrence.cuh", "scores.cu", "wavefront.cu"} <= {
        path.name for path in files
    }
    texts = [text for path in files for text in (path.name.encode(), path.read_bytes())]
    expected = hashlib.sha256(b"".join(hashlib.sha256(text).digest() for text in texts)).hexdigest()
    assert source_hash() == expected


def test_sources_do_not_hide_nvidias_package() -> None:
    assert not (SOURCES / "__init__.py").exists()


def toolchain(kind: type[Nvrtc] | type[Nvcc]) -> Toolchain:
    for place in nvrtc_places() if kind is Nvrtc else nvcc_places():
        try:
            return kind(place)
        except OSError:
            continue
    pytest.skip(f"{kind.kind} was not found; pip install nvidia-cuda-nvrtc, or install a CUDA toolkit")


@pytest.mark.parametrize("kind", [Nvrtc, Nvcc])
def test_real_compiler_compiles_and_explains(kind: type[Nvrtc] | type[Nvcc], sources: Path, tmp_path: Path) -> None:
    compiler = Compiler(toolchain(kind), "sm_90", sources=sources, cache_folder=tmp_path / "cache")
    assert compiler.compile(Kernel("scores")).startswith(b"\x7fELF")
    assert compiler.description == f"{kind.kind} {compiler.toolchain.version[0]}.{compiler.toolchain.version[1]}"
    (sources / "scores.cu").write_text("__global__ void broken() { no_such_thing(); }\n")
    with pytest.raises(EngineError, match=r"kernel scores\(\)(.|\n)*no_such_thing"):
        compiler.compile(Kernel("scores"))


@pytest.mark.parametrize("kind", [Nvrtc, Nvcc])
def test_real_compiler_with_broken_file_is_not_taken(kind: type[Nvrtc] | type[Nvcc], tmp_path: Path) -> None:
    impostor = tmp_path / "impostor"
    impostor.write_text("#!/bin/sh\necho no version here\n")
    impostor.chmod(0o755)
    with pytest.raises(OSError, match=r"impostor|version"):
        kind(str(impostor))
    with pytest.raises(OSError):
        kind(str(tmp_path / "absent"))
