"""Base classes for what connects the workers of a group: a process group of torch, or a user's
own."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, ContextManager

from ray.train.public import public

if TYPE_CHECKING:
    from ray.train.worker_group import WorkerGroup


class Backend:
    """Connects the workers of each group at its start, and parts them at its end.

    The methods run in the controller, in one thread after another, and may block. An exception of
    on_start or on_training_start ends the run with a ControllerError around it, unless a worker
    died: then the group is started again.
    """

    def on_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        """Called when all workers of the group are up and know their ranks."""

    def on_training_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        """Called after on_start, just before the training function starts in all workers."""

    def on_shutdown(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        """Called when the functions of all workers have returned, before the workers leave."""

    def on_local_start(self, backend_config: BackendConfig) -> None:
        """Called in local mode (num_workers=0), in the driver's process, before the function."""

    def on_local_end(self, backend_config: BackendConfig) -> None:
        """Called in local mode after the function, also when it failed."""


@public
@dataclass
class BackendConfig:
    """Says which Backend a trainer uses, and how; the base class connects nothing."""

    @property
    def backend_cls(self) -> type:
        """The class of the backend. It is made without arguments, in the controller."""
        return Backend

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules that workers need at once. A node imports them only once, before it forks them
        (runtime_env["preload"])."""
        return ()

    @property
    def train_func_context(self) -> Callable[[], ContextManager[Any]]:
        """Makes the context manager that the training thread enters around the function."""
        return contextlib.nullcontext
