"""The commands `rayctl` and `ray` of an installed package, which contains the program."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import ray._raylet


def path_of(name: str) -> str:
    """Returns the path of a program of this installation.

    It is in the package, or in the build directory that the package belongs to. Raises
    FileNotFoundError, which names the expected place.
    """
    package = os.path.dirname(os.path.realpath(ray._raylet.__file__))
    candidates = [
        os.path.join(package, "bin", name),
        os.path.join(package, "..", "..", "bin", name),
    ]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return os.path.normpath(candidate)
    raise FileNotFoundError(
        f"{name} is not in {os.path.dirname(candidates[0])}: install the package again"
    )


def rayctl() -> NoReturn:
    """Replaces this process by rayctl.

    Nodes that rayctl starts run workers with this interpreter, unless RAY_PYTHON names another.
    """
    os.environ.setdefault("RAY_PYTHON", sys.executable)
    os.execv(path_of("rayctl"), ["rayctl", *sys.argv[1:]])
