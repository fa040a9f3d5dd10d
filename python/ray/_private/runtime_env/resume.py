"""The program that a worker becomes when its runtime environment needs another interpreter, or
variables that are read when a program starts (setup.py)."""

from __future__ import annotations

import ctypes
import json
import os


def resume(descriptor: int):
    """The main program after setup._exec(); `descriptor` is that of its arguments."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(descriptor, "rb") as file:
        args = json.load(file)
    ctypes.CDLL(None).prctl(15, b"ray::IDLE", 0, 0, 0)
    # Imported only now, after setup._exec()'s program has put sys.path in order.
    from ray._private import worker_main

    code = worker_main.main(args)
    os._exit(code & 0xFF if isinstance(code, int) else 0)
