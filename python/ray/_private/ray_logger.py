"""The logger "ray" and those below it: where they write, and from which level on.

It is configured when `ray` is imported if `logging` already is, else as soon as the program
imports `logging`: importing that takes half as long as importing all of `ray`.
"""

from __future__ import annotations

import sys

from ray._private.ray_constants import LOGGER_FORMAT
from ray._private.session import WORKER_MODE, global_worker


def configure(level="INFO", fmt=LOGGER_FORMAT):
    """Sends records of `level` and above to stderr, and not to the root logger.

    Drivers format them by `fmt`; workers write bare messages, which get their prefix at the
    driver. Handlers that others added stay.
    """
    import logging

    class ToStderr(logging.Handler):
        """Writes to whatever sys.stderr is when a record arrives."""

        made_by_ray = True

        def emit(self, record):
            try:
                sys.stderr.write(self.format(record) + "\n")
                sys.stderr.flush()
            except Exception:
                self.handleError(record)

    class ByProcess(logging.Formatter):
        """Formats without time and place in workers."""

        def formatMessage(self, record):
            return (
                record.message
                if global_worker.mode == WORKER_MODE
                else super().formatMessage(record)
            )

    logger = logging.getLogger("ray")
    logger.setLevel(level.upper() if isinstance(level, str) else level)
    logger.propagate = False
    handler = next(
        (known for known in logger.handlers if getattr(known, "made_by_ray", False)), None
    )
    if handler is None:
        handler = ToStderr()
        logger.addHandler(handler)
    handler.setFormatter(ByProcess(fmt))


class _AfterImport:
    """A finder that leaves `logging` to the others, and configures "ray" after its import."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "logging":
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name)
        if spec is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            if _AfterImport in sys.meta_path:
                sys.meta_path.remove(_AfterImport)
            configure()

        spec.loader.exec_module = exec_module
        return spec


def install():
    """Called when `ray` is imported."""
    if "logging" in sys.modules:
        configure()
    else:
        sys.meta_path.insert(0, _AfterImport)
