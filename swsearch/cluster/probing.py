"""Whether a Dask scheduler listens at an address: asked before a client is made, which may wait for ever.

Whatever listens there may be something else, or say nothing.
"""

from __future__ import annotations

import asyncio
import importlib
import re
import threading
from typing import Any

from swsearch.cluster.calls import one_line
from swsearch.errors import ClusterError, OptionError

_ADDRESS = re.compile(r"(?:(?P<scheme>[a-z]+)://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/:\[\]@]+):(?P<port>[0-9]{1,5})/?")
_SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")
_EXPECTED = "the address of a Dask scheduler, such as tcp://host:8786, or local:4 for 4 workers on this machine"


LEFT_AFTER = 3.0
"""Seconds after its time that a thread gets which asks for an answer."""


def checked_address(name: str, option: str) -> str:
    """Return a scheduler's address with its scheme.

    Parameters
    ----------
    name : str
        As the user wrote it.
    option : str
        What messages call it.

    Raises
    ------
    OptionError
        If it is none.
    """
    parts = _ADDRESS.fullmatch(name)
    scheme = "" if parts is None else parts["scheme"] or "tcp"
    if parts is None or scheme not in _SCHEMES or not 0 < int(parts["port"]) < 1 << 16:
        raise OptionError(option, name, _EXPECTED)
    return f"{scheme}://{parts['host']}:{parts['port']}"


def check_scheduler(address: str, timeout: float) -> None:
    """Raise `ClusterError` unless a Dask scheduler answers at an address.

    Parameters
    ----------
    address : str
        With its scheme.
    timeout : float
        Most seconds to wait for an answer.
    """
    outcome: list[Any] = []

    def ask() -> None:
        try:
            outcome.append(asyncio.run(asyncio.wait_for(_identity(address, timeout), timeout + 0.1)))
        except Exception as error:
            outcome.append(error)

    # in a thread of its own, since the caller's may have a loop that runs, and what it waits for may never end
    thread = threading.Thread(target=ask, name="swsearch-probe", daemon=True)
    thread.start()
    thread.join(timeout + LEFT_AFTER)
    told = outcome[0] if outcome else TimeoutError()
    expected = "expected one that 'dask scheduler' started"
    if isinstance(told, BaseException):
        why = one_line(told) if str(told) else f"nothing within {timeout:.0f} s"
        raise ClusterError(f"{address}: no Dask scheduler answered ({why}); {expected}") from told
    kind = str(told.get("type", "")) if isinstance(told, dict) else ""
    if "scheduler" not in kind.lower():
        raise ClusterError(f"{address}: this is a Dask {kind.lower() or 'server'}; {expected}")


async def _identity(address: str, timeout: float) -> Any:
    core: Any = importlib.import_module("distributed.core")
    security: Any = importlib.import_module("distributed.security")
    comm = await core.connect(address, timeout=timeout, **security.Security().get_connection_args("client"))
    try:
        return await core.send_recv(comm, op="identity")
    finally:
        comm.abort()
