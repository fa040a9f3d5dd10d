"""UserCallback, and the callbacks that the environment adds."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ray.train.public import public

if TYPE_CHECKING:
    from ray.train.checkpoint import Checkpoint

CALLBACKS_VARIABLE = "RAY_TRAIN_CALLBACKS"


@public
class UserCallback:
    """Base of callbacks that run in the controller of a run: `RunConfig(callbacks=[...])`.

    They are sent to the controller by value. `run_context` has the attributes run_config,
    scaling_config and train_loop_config.
    """

    def after_report(
        self,
        run_context: Any,
        metrics: list[dict[str, Any]],
        checkpoint: Checkpoint | None,
    ) -> None:
        """Called once for each report that all ranks have made.

        metrics: those of every rank, by rank. checkpoint: as it lies in the run's folder, or None.
        """

    def after_exception(
        self, run_context: Any, worker_exceptions: dict[int, BaseException]
    ) -> None:
        """Called for each attempt that failed, before it is decided whether there is another.

        worker_exceptions: rank -> its exception.
        """


def load_callbacks(variable: str = CALLBACKS_VARIABLE) -> list[UserCallback]:
    """Makes one callback of each class that the environment variable names.

    It holds `package.module.Class` entries with commas between them. Raises ValueError for an entry
    that cannot be imported, or whose class is no UserCallback that can be made without arguments.
    """
    return [
        _make(path.strip(), variable)
        for path in os.environ.get(variable, "").split(",")
        if path.strip()
    ]


def _make(path: str, variable: str) -> UserCallback:
    module, _, name = path.rpartition(".")
    try:
        callback = getattr(importlib.import_module(module), name)()
    except Exception as error:
        raise ValueError(
            f"{variable} names {path!r}, from which no callback can be made: "
            f"{type(error).__name__}: {error}. It must be package.module.Class of a "
            "ray.train.UserCallback that needs no arguments."
        ) from error
    if not isinstance(callback, UserCallback):
        raise ValueError(
            f"{variable} names {path!r}, which is no ray.train.UserCallback but a "
            f"{type(callback).__name__}."
        )
    return callback
