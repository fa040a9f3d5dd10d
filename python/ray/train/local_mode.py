"""Training in the driver's own process and thread: ScalingConfig(num_workers=0)."""

from __future__ import annotations

import logging
import os
from typing import Any, Callable

from ray.train import data
from ray.train.reporter import Report
from ray.train.result import Result
from ray.train.session import set_session
from ray.train.times import Times

logger = logging.getLogger("ray.train")


def _number(name: str, default: int) -> int:
    return int(os.environ.get(name) or default)


class LocalSession:
    """The run as the only rank sees it; under torchrun, as this rank of it sees it.

    Nothing is stored and nobody is waited for: reports keep the last metrics and checkpoint.
    """

    is_local = True

    def __init__(self, experiment_name: str, shards: dict[str, Any] | None):
        self.world_rank, self.world_size = _number("RANK", 0), _number("WORLD_SIZE", 1)
        self.local_rank = _number("LOCAL_RANK", 0)
        self.local_world_size = _number("LOCAL_WORLD_SIZE", 1)
        self.node_rank = _number("GROUP_RANK", _number("NODE_RANK", 0))
        self.node_ip, self.node_id = "127.0.0.1", ""
        self.gpu_ids: list[str] = []
        self.experiment_name = experiment_name
        self.storage = None
        self.checkpoint: Any = None
        self.metrics: dict[str, Any] | None = None
        self.shards = shards
        self.times = Times(None)
        # No controller could ask for a profile.
        self.steps = None

    def meet(self, call: str, value: Any = None, uploads: bool = False) -> Any:
        """Returns at once, since there is nobody to wait for."""
        return value

    def broadcast(self, data: Any) -> Any:
        """Returns at once, since there is nobody to wait for."""
        return data

    def report(self, report: Report) -> None:
        """Keeps and logs metrics and checkpoint, which stays where it is."""
        self.metrics = report.metrics
        if report.checkpoint is not None:
            self.checkpoint = report.checkpoint
        logger.info("Reported: metrics %s, checkpoint %s", report.metrics, report.checkpoint)

    def reported_checkpoints(self, mode: Any, timeout_s: float | None) -> list:
        """Returns an empty list, since local mode keeps no record of checkpoints."""
        return []

    def preemption(self) -> None:
        """Returns None: no node of a group can be drained."""
        return None


def fit(
    name: str, call: Callable[[], Any], backend_config: Any, datasets: dict, data_config: Any
) -> Result:
    """Runs the training function here. Raises what it raises."""
    shards = None
    if datasets:
        shards = data.shards_for(datasets, data_config, 1)[0]
    session = LocalSession(name, shards)
    backend = backend_config.backend_cls()
    set_session(session)
    try:
        backend.on_local_start(backend_config)
        try:
            with backend_config.train_func_context():
                value = call()
        finally:
            backend.on_local_end(backend_config)
    finally:
        set_session(None)
    return Result(
        metrics=session.metrics,
        checkpoint=session.checkpoint,
        error=None,
        path=None,
        best_checkpoints=[],
        return_value=value,
        _storage_filesystem=None,
    )
