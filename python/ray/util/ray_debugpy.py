"""Breakpoints for debuggers that speak the Debug Adapter Protocol, with the package debugpy."""

from __future__ import annotations

import importlib.util
import sys

from ray._private.breakpoints import Waiting, host

_address: tuple[str, int] | None = None  # debugpy listens once per process.


def available() -> bool:
    try:
        return importlib.util.find_spec("debugpy") is not None
    except ValueError:
        return "debugpy" in sys.modules


def set_trace(breakpoint_uuid: str | None = None) -> None:
    """Stops the caller until a debugger is attached and lets it go on.

    Raises ImportError when debugpy is not installed.
    """
    stop(breakpoint_uuid)


def stop(name: str | None) -> None:
    global _address
    try:
        import debugpy
    except ImportError as error:
        raise ImportError(
            "ray.util.ray_debugpy needs debugpy, which is not installed: pip install debugpy, or "
            "set RAY_DEBUG=legacy"
        ) from error

    if _address is None:
        _address = debugpy.listen((host(), 0))
    if not debugpy.is_client_connected():
        address = "{}:{}".format(*_address)
        waiting = Waiting("", address, "debugpy", name)
        print(f"debugpy waits at {address}.", file=sys.stderr, flush=True)
        try:
            debugpy.wait_for_client()
        finally:
            waiting.remove()
    debugpy.breakpoint()
