"""Where Train writes: lines on the driver's terminal, and two files a process in the session.

`ray-train-app-*` has what the user's function prints and logs, and Train's lines of the run's log
level; `ray-train-sys-*` has all of Train's own lines, also those of the level DEBUG. Both have one
JSON object a line.
"""

from __future__ import annotations

import builtins
import json
import logging
import os
import sys
import time
from typing import Any

from ray import _raylet

# A file with more bytes than this becomes FILE.1, in place of an older one.
_MOST_BYTES = 64 << 20

_plain_print = builtins.print


def directory() -> str:
    """Returns the directory of these files on this node."""
    return os.path.join(_raylet.context()["session_dir"], "logs", "train")


def path_of(kind: str, component: str, worker_id: str) -> str:
    """Returns the path of a process's file. kind: "app" or "sys"; component: "controller" or
    "worker"."""
    return os.path.join(directory(), f"ray-train-{kind}-{component}-{worker_id}.log")


class JsonFile(logging.Handler):
    """Appends records as JSON lines; the file is made with the first one.

    A failing disk costs lines, never the run.
    """

    def __init__(self, path: str, fields: dict[str, Any], level: int):
        super().__init__(level)
        self.path = path
        self._fields = fields
        self._file = None
        self._size = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
            if record.exc_info:
                text += "\n" + logging.Formatter().formatException(record.exc_info)
            self.write(
                record.created, record.levelname, text, record.filename, record.lineno, record.name
            )
        except OSError:
            pass
        except Exception:
            self.handleError(record)

    def write(self, created, level, text, filename="", lineno=0, name="") -> None:
        """Writes one line. created: seconds since the epoch."""
        if self._file is None or self._size > _MOST_BYTES:
            self._open()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(created))
        entry = {
            "asctime": f"{stamp},{int(created % 1 * 1000):03d}",
            "levelname": level,
            "message": text,
            "filename": filename,
            "lineno": lineno,
            **({"name": name} if name else {}),
            **self._fields,
            "timestamp_ns": int(created * 1e9),
        }
        line = json.dumps(entry, default=str) + "\n"
        self._file.write(line)
        self._size += len(line)

    def _open(self) -> None:
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if self._file is not None:
            self._file.close()
            os.replace(self.path, self.path + ".1")
        self._file = open(self.path, "a", buffering=1, encoding="utf-8")
        self._size = self._file.tell()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()


class _Terminal(logging.Handler):
    """Writes bare messages to sys.stderr; the driver puts the name of the actor before them."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except OSError:
            # Standard error is a file in the session's directory, whose disk may be full.
            pass
        except Exception:
            self.handleError(record)


class _LastResort(_Terminal):
    """Shows records of loggers that nobody has configured, as long as the root logger has no
    handler of the user's. So `logging.info(...)` in a training function is shown, as print() is.
    Records of torch below WARNING are left out: older versions log every meeting of their ranks,
    which interests no user."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING and record.name.startswith("torch."):
            return
        ours = (JsonFile, _LastResort)
        if all(isinstance(handler, ours) for handler in logging.getLogger().handlers):
            super().emit(record)


def configure(component: str, level: int, fields: dict[str, Any], patch_print: bool) -> None:
    """Sets up the logger "ray.train" of an actor's process, in place of an earlier set-up.

    component: "controller" or "worker". fields: what every line of the files says of its origin.
    patch_print: also write what print() prints to the app file.
    """
    context = _raylet.context()
    worker_id = context["worker_id"].hex()
    fields = {
        "job_id": context["job_id"].hex() if context.get("job_id") else "",
        "worker_id": worker_id,
        "node_id": context["node_id"].hex(),
        "component": component,
        **fields,
    }
    app = JsonFile(path_of("app", component, worker_id), fields, level)
    system = JsonFile(path_of("sys", component, worker_id), fields, logging.DEBUG)
    terminal = _Terminal(level)
    logger = logging.getLogger("ray.train")
    root = logging.getLogger()
    for one in (logger, root):
        for handler in list(one.handlers):
            if isinstance(handler, (JsonFile, _Terminal)):
                one.removeHandler(handler)
                handler.close()
    logger.propagate = False
    logger.setLevel(min(level, logging.DEBUG))
    for handler in (terminal, app, system):
        logger.addHandler(handler)
    root.addHandler(app)
    root.addHandler(_LastResort(logging.INFO))
    # This is Python's default level.
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)
    if patch_print:
        _patch_print(app)


def _patch_print(app: JsonFile) -> None:
    """Makes print() write to the app file, too; lines that go to other files are left alone."""

    def print_and_log(*values, sep=" ", end="\n", file=None, flush=False):
        _plain_print(*values, sep=sep, end=end, file=file, flush=flush)
        if file is not None and file not in (sys.stdout, sys.stderr):
            return
        text = (" " if sep is None else sep).join(map(str, values))
        # Records of other threads are written with this lock, and logging makes it anew in a child
        # that was forked while another thread held it.
        app.acquire()
        try:
            app.write(time.time(), "INFO", text)
        except OSError:
            # A full disk costs lines of the file; the terminal still has them.
            pass
        finally:
            app.release()

    builtins.print = print_and_log
