"""Not a public interface.

Programs use some modules of this package without importing them; those are imported on first use.
"""

from __future__ import annotations

import sys
from types import ModuleType

_MODULES = ("internal_api", "state", "worker")


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        # This does the same as ray._module().
        __import__(f"ray._private.{name}")
        return sys.modules[f"ray._private.{name}"]
    raise AttributeError(f"module 'ray._private' has no attribute {name!r}")
