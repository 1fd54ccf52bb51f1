"""Starting CUDA early must never get in the way: whatever fails is told later, by the engine."""

import ctypes
import threading

import pytest

from swsearch.cli import main


class FakeCuda:
    """Stands for the driver's library."""

    def __init__(self, devices, fails=""):
        self.devices, self.fails, self.calls = devices, fails, []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = self.devices
            if name == "cuDeviceGet":
                self.calls.append(arguments[1])
            return int(name == self.fails)

        return call


def opened(monkeypatch, device, cuda):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: cuda)
    main._open_device(device)
    return cuda.calls


def test_the_only_device_is_opened(monkeypatch):
    expected = ["cuInit", "cuDeviceGetCount", "cuDeviceGet", 0, "cuDevicePrimaryCtxRetain"]
    assert opened(monkeypatch, None, FakeCuda(1)) == expected


def test_of_several_devices_the_one_that_was_asked_for(monkeypatch):
    assert opened(monkeypatch, 2, FakeCuda(4))[2:] == ["cuDeviceGet", 2, "cuDevicePrimaryCtxRetain"]
    assert opened(monkeypatch, None, FakeCuda(4)) == ["cuInit", "cuDeviceGetCount"]


@pytest.mark.parametrize(("device", "first"), [((2, 0), 2), ("all", 0), (3, 3), (None, None)])
def test_of_several_devices_the_first_is_opened(monkeypatch, device, first):
    asked = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr(main, "_open_device", asked.append)
    main.warm_up_gpu(device)
    for thread in threading.enumerate():
        if thread.name == "swsearch-cuda":
            thread.join()
    assert asked == [first]


@pytest.mark.parametrize("fails", ["cuInit", "cuDeviceGetCount", "cuDeviceGet"])
def test_a_failure_ends_it(monkeypatch, fails):
    assert "cuDevicePrimaryCtxRetain" not in opened(monkeypatch, 0, FakeCuda(1, fails))


def test_no_driver(monkeypatch, capfd):
    asked = []

    def missing(name):
        asked.append(name)
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    main._open_device(None)
    assert asked == ["libcuda.so.1"]
    assert capfd.readouterr() == ("", "")


def test_nothing_is_started_without_pycuda(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    before = threading.active_count()
    main.warm_up_gpu(None)
    assert threading.active_count() == before
