"""The logger "ray" and those below it: where they write and from which level. Contract: semantics, section 11.

It is configured when `ray` is imported, or, because importing `logging` takes half as long as importing all of `ray`, when the program first imports that.
"""

from __future__ import annotations

import sys

from ray._private.ray_constants import LOGGER_FORMAT


def configure(level="INFO", fmt=LOGGER_FORMAT):
    """Records of `level` and above go to stderr: in drivers formatted by `fmt`, in workers as bare messages, which get their prefix at the driver. They
    do not propagate to the root logger. Handlers others added stay."""
    import logging

    class ToStderr(logging.Handler):
        """To what sys.stderr is at that moment."""

        made_by_ray = True

        def emit(self, record):
            try:
                sys.stderr.write(self.format(record) + "\n")
                sys.stderr.flush()
            except Exception:
                self.handleError(record)

    class ByProcess(logging.Formatter):
        """Without a time and a place in workers."""

        def formatMessage(self, record):
            from ray._private.worker import WORKER_MODE, global_worker

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
    """A finder that lets the others find `logging`, and configures its logger once it has run."""

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
    """At the import of `ray`."""
    if "logging" in sys.modules:
        configure()
    else:
        sys.meta_path.insert(0, _AfterImport)
