"""TorchConfig, and the backend that makes one process group of all workers.

The controller unpickles and runs this, so it imports no torch: what happens in workers is in
process_group.py, and is called by name.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import importlib
import logging
import os
from typing import TYPE_CHECKING, Any, Callable, ContextManager

import ray
from ray.train.backend import Backend, BackendConfig

if TYPE_CHECKING:
    from ray.train.worker_group import WorkerGroup

logger = logging.getLogger("ray.train")

_INIT_METHODS = ("env", "tcp")
# Each node imports these once, in the process from which workers are forked. The import takes most
# of the time of a cold start.
_PRELOAD = (
    "torch",
    "torch.distributed",
    "ray.train.torch.data_loader",
    "ray.train.torch.model",
    "ray.train.torch.process_group",
)
# Workers get so many seconds to leave the process group, unless the environment says otherwise.
_SHUTDOWN_TIMEOUT_S = 30.0
_SHUTDOWN_TIMEOUT_VARIABLE = "TORCH_PROCESS_GROUP_SHUTDOWN_TIMEOUT_S"


@dataclasses.dataclass(frozen=True)
class InWorker:
    """A function of process_group.py that is found when it is called, in a worker."""

    name: str

    def __call__(self, *args: Any) -> Any:
        module = importlib.import_module("ray.train.torch.process_group")
        return getattr(module, self.name)(*args)


@dataclasses.dataclass
class TorchConfig(BackendConfig):
    """The process group of a run.

    backend: of torch.distributed; by default "nccl" with GPUs and "gloo" without.
    init_method: how the workers find each other: "env" (MASTER_ADDR, MASTER_PORT) or "tcp".
    timeout_s: seconds after which a collective operation fails.

    Wrong values show when the workers start, as a ControllerError around a ValueError.
    """

    backend: str | None = None
    init_method: str = "env"
    timeout_s: float = 1800

    @property
    def backend_cls(self) -> type:
        return TorchBackend

    @property
    def train_func_context(self) -> Callable[[], ContextManager[Any]]:
        return InWorker("training_thread")

    @property
    def preload(self) -> tuple[str, ...]:
        return _PRELOAD


class TorchBackend(Backend):
    """Enters the workers into a process group together, also when there is only one."""

    # Whether this process has entered the process group in local mode, and so has to leave it.
    _has_entered = False

    def on_start(self, worker_group: WorkerGroup, backend_config: TorchConfig) -> None:
        """Makes the process group. Raises ValueError for an unknown init_method, and what torch
        raises in the first worker that fails."""
        if backend_config.init_method not in _INIT_METHODS:
            raise ValueError(
                f'TorchConfig(init_method={backend_config.init_method!r}): it must be "env" or '
                '"tcp".'
            )
        # All workers import torch at the same time; rank 0 also looks for a port.
        ports = _values(worker_group.execute_async(InWorker("prepare"), backend_config.backend))
        address = (worker_group.workers[0].node_ip, ports[0])
        _values(worker_group.execute_async(InWorker("enter"), backend_config, address))

    def on_shutdown(self, worker_group: WorkerGroup, backend_config: TorchConfig) -> None:
        """Leaves the process group; workers that do not manage that in time are left alone."""
        timeout_s = float(os.environ.get(_SHUTDOWN_TIMEOUT_VARIABLE) or _SHUTDOWN_TIMEOUT_S)
        refs = worker_group.execute_async(InWorker("leave"))
        _, late = ray.wait(refs, num_returns=len(refs), timeout=timeout_s)
        if late:
            logger.warning(
                "%d of %d workers have not left their process group within %g s (%s).",
                len(late),
                len(refs),
                timeout_s,
                _SHUTDOWN_TIMEOUT_VARIABLE,
            )

    def on_local_start(self, backend_config: TorchConfig) -> None:
        """Under torchrun, which has set the ranks, enters this process into its group."""
        self._has_entered = InWorker("enter_local")(backend_config)

    def on_local_end(self, backend_config: TorchConfig) -> None:
        """Leaves that group, but not one that the program had entered before."""
        if self._has_entered:
            InWorker("leave")(1)


def _values(refs: list[Any]) -> list[Any]:
    """The values of the references, in their order.

    Raises the first error that comes, whatever the others do: ranks would wait for a failed one
    until their own timeout.
    """
    # Futures take the errors of the other references when they come; nobody looks at them.
    futures = [ref.future() for ref in refs]
    for done in concurrent.futures.as_completed(futures):
        done.result()
    return [future.result() for future in futures]
