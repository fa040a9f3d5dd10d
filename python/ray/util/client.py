"""Ray Client, the proxy for ray:// addresses, is absent: drivers join clusters directly.

Libraries ask here whether a driver uses it.
"""

from __future__ import annotations

from typing import NoReturn

from ray._private.absent import absent_attribute

__all__ = ["num_connected_contexts", "ray"]


class RayAPIStub:
    """Has the one answer that libraries want of Ray Client; its other names raise."""

    def is_connected(self) -> bool:
        """Returns False: no driver is connected by Ray Client."""
        return False

    def __getattr__(self, name: str) -> NoReturn:
        raise absent_attribute(f"ray.util.client.ray.{name}")


ray = RayAPIStub()


def num_connected_contexts() -> int:
    """Returns 0, as no driver is connected by Ray Client."""
    return 0
