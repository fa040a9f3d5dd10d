"""Definitions of functions and actor classes on their way to workers.

They are pickled once. Small ones travel with their calls, large ones through the head's key-value
store under their content hash.
"""

from __future__ import annotations

import os
import sys

from ray import _raylet
from ray._private.environment import number_from_environment

_INLINE = 256 * 1024
_WARN = 10 * 1024 * 1024


def shown_module(module: str) -> str:
    """The name of a module for display: that of a script is the file's, not __main__."""
    if module != "__main__":
        return module

    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.splitext(os.path.basename(file))[0] if file else module


class Definition:
    """One function or class. It is pickled on first use and stored once per session."""

    def __init__(self, target):
        self.target = target
        self.module = getattr(target, "__module__", None) or ""
        self.name = (
            getattr(target, "__qualname__", None)
            or getattr(target, "__name__", None)
            or type(target).__name__
        )
        self._blob = None
        self._key = None
        self._stored_in = 0

    def describe(self, kind: str) -> dict:
        """Returns the function's fields of a task template."""
        if self._blob is None:
            self._pickle(kind)
        large = len(self._blob) > _INLINE
        if large and self._stored_in != _raylet.session():
            _raylet.kv_put("fun", self._key.hex(), self._blob, False)
            self._stored_in = _raylet.session()
        return {
            "module": shown_module(self.module),
            "function_name": self.name,
            "key": self._key,
            "blob": b"" if large else self._blob,
        }

    def _pickle(self, kind: str):
        from _blake2 import blake2b

        from ray import cloudpickle

        try:
            blob = cloudpickle.dumps(self.target)
        except Exception as error:
            from ray._private.serialization import raise_unserializable

            raise_unserializable("the " + kind.replace("remote ", ""), self.target, error)
        limit = number_from_environment("FUNCTION_SIZE_ERROR_THRESHOLD", int, 100_000_000)
        if len(blob) > limit:
            raise ValueError(
                f"The {kind} {self.name} is too large ({len(blob) >> 20} MiB > "
                f"FUNCTION_SIZE_ERROR_THRESHOLD={limit >> 20} MiB). "
                "Check that its definition is not implicitly capturing a large array or other "
                "object in scope. Tip: use ray.put() to put large objects in the object store."
            )
        if len(blob) > _WARN:
            import logging

            logging.getLogger("ray").warning(
                "The %s %s is very large (%d MiB). Check that its definition is not implicitly "
                "capturing a large array or other "
                "object in scope. Tip: use ray.put() to put large objects in the object store.",
                kind,
                self.name,
                len(blob) >> 20,
            )
        self._key = blake2b(blob, digest_size=16).digest()
        # Set last, because Ctrl-C may interrupt this method anywhere.
        self._blob = blob
