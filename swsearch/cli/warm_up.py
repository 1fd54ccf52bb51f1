"""Starting CUDA early: the driver needs 0.2 s for itself, in which Python can import what it needs.

Only the standard library is imported here, so that this can be the first thing that a command does.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import threading


def warm_up_gpu(device: int | tuple[int, ...] | str | None) -> None:
    """Begin in the background to initialise the driver and to open a device, if PyCUDA is installed at all.

    Whatever fails here fails again, and is told, when the GPU engine is made.

    Parameters
    ----------
    device : int, tuple of int, "all" or None
        Which one; the first of several. None opens the only one, and none where there are several.
    """
    if importlib.util.find_spec("pycuda") is not None:
        with contextlib.suppress(RuntimeError):  # no thread to be had
            first = 0 if isinstance(device, str) else device[0] if isinstance(device, tuple) else device
            threading.Thread(target=_open, args=(first,), name="swsearch-cuda", daemon=True).start()


def _open(device: int | None) -> None:
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    count, handle, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return
    if device is None and count.value > 1:
        return
    # the context is the process's own, shared with PyCUDA, and ends with the process
    if not cuda.cuDeviceGet(ctypes.byref(handle), device or 0):
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
