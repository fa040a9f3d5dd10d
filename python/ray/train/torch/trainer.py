"""TorchTrainer: data-parallel training in which the workers are one process group of torch."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

from ray.train import checks
from ray.train.config import DataConfig, RunConfig, ScalingConfig
from ray.train.torch.config import TorchConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


class TorchTrainer(DataParallelTrainer):
    """Runs a function on every worker, after they have entered a process group.

    torch_config: of the process group; its backend is "nccl" with GPUs and "gloo" without unless it
    says otherwise. The other arguments, and what fit() does, are those of DataParallelTrainer.
    Raises ValueError for configurations of other classes.
    """

    def __init__(  # Ray's signature
        self,
        train_loop_per_worker: Callable[..., Any],
        *,
        train_loop_config: dict[str, Any] | None = None,
        torch_config: TorchConfig | None = None,
        scaling_config: ScalingConfig | None = None,
        run_config: RunConfig | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        validation_config: Any = None,
        metadata: dict[str, Any] | None = None,
        resume_from_checkpoint: Any = None,
    ):
        torch_config = TorchConfig() if torch_config is None else torch_config
        checks.check_instance("TorchTrainer", "torch_config", torch_config, TorchConfig)
        if torch_config.backend is None:
            uses_gpus = bool(getattr(scaling_config, "use_gpu", False))
            # The configuration is copied, since the user may give it to another trainer, too.
            torch_config = dataclasses.replace(
                torch_config, backend="nccl" if uses_gpus else "gloo"
            )
        super().__init__(
            train_loop_per_worker,
            train_loop_config=train_loop_config,
            backend_config=torch_config,
            scaling_config=scaling_config,
            run_config=run_config,
            datasets=datasets,
            dataset_config=dataset_config,
            validation_config=validation_config,
            metadata=metadata,
            resume_from_checkpoint=resume_from_checkpoint,
        )
