"""Not a public interface. The modules that programs use without importing them are imported when first asked for."""

from __future__ import annotations

from types import ModuleType

_MODULES = ("internal_api", "state", "worker")


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"ray._private.{name}")
    raise AttributeError(f"module 'ray._private' has no attribute {name!r}")
