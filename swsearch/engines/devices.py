"""GPUs that an option names: one by its number, several, or all usable ones.

The option is checked without a GPU. Devices are queried only when they matter, or for an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from swsearch.cuda_package import UNUSABLE
from swsearch.errors import InputError, OptionError, SwsearchError, SwsearchWarning, check_integer

if TYPE_CHECKING:
    from swsearch.engines.gpu.device import DeviceInfo

Devices = int | Sequence[int] | Literal["all"]
"""Values of ``device=``: a number, numbers (repeats allowed), or "all" usable devices."""

CheckedDevices = int | tuple[int, ...] | Literal["all"]
"""The same after it was checked; several are at least two."""

MAX_DEVICES = 64
"""Most devices that may be named; one that is named again counts again."""

MAX_DEVICE = 999
"""Greatest number that may be one of a device; no machine has as many."""

DEVICES_EXPECTED = 'the number of a GPU, a list of such numbers, or "all"'
"""Values of ``device=``, in the words of an error."""


def check_devices(value: Any) -> CheckedDevices | None:
    """Return what was given for ``device``, or None where nothing was.

    Parameters
    ----------
    value : int, sequence or array of int, "all" or None
        Whole numbers may be of numpy. One number in a sequence is that number.

    Raises
    ------
    OptionError
        If it is something else; it says which devices there are.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if value == "all":
            return "all"
        raise device_error(value)
    if not isinstance(value, (list, tuple, range)) and type(value).__name__ != "ndarray":
        return _number(value, value)
    # a range may be longer than any length that Python counts, and an array of no dimension has none
    try:
        count = len(value)
    except (OverflowError, TypeError):
        count = 0
    if not 1 <= count <= MAX_DEVICES:
        raise device_error(value, f"{DEVICES_EXPECTED}, 1 to {MAX_DEVICES} of them")
    numbers = tuple(_number(each, value) for each in value)
    return numbers[0] if len(numbers) == 1 else numbers


def _number(one: Any, value: Any) -> int:
    try:
        return check_integer("device", one, 0, MAX_DEVICE)
    except InputError:
        raise device_error(value) from None


def device_error(value: object, expected: str = DEVICES_EXPECTED) -> OptionError:
    """Make the error for what no device is named by."""
    return OptionError("device", value, expected, available_devices_message())


def available_devices_message() -> str:
    """Say which devices this machine has, for the end of an error; empty where none can be asked for."""
    from swsearch.engines.gpu.device import list_devices, names_of

    try:
        return f"there are {names_of(list_devices())}"
    except SwsearchError:
        return ""


def resolve_devices(devices: tuple[int, ...] | Literal["all"]) -> list[DeviceInfo]:
    """Return the devices that are named, in the order given, or all that can be used, by number.

    Those that are too old are left out of all, with a warning.

    Raises
    ------
    GpuUnavailableError
        If there is none, or one that is named is too old.
    OptionError
        If there is no device of a number.
    """
    from swsearch.engines.gpu.device import choose_device, list_devices, why_too_old

    if devices != "all":
        return [choose_device(index) for index in devices]
    every = list_devices()
    usable = [each for each in every if not why_too_old(each)]
    if not usable:
        return [choose_device(None)]  # which says why not
    warn_skipped(f"{each} {why_too_old(each)}" for each in every if each not in usable)
    return usable


def warn_skipped(reasons: Iterable[object]) -> None:
    """Warn of devices that the work is done without, each by the reason or the error that it could not be opened."""
    for each in reasons:
        text = str(each).removeprefix(UNUSABLE).removesuffix(", or use --engine cpu")
        warnings.warn(f"a GPU is left out: {text}", SwsearchWarning, stacklevel=2)
