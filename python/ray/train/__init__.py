"""Distributed training: a function on several workers, its checkpoints and its failures.

Names are loaded when they are used, so that the import is cheap. `ray.train.torch`,
`ray.train.collective` and other parts are imported by their own names.
"""

from __future__ import annotations

import importlib

from ray._private.absent import raise_missing

_MODULES = {
    "ray.train.backend": ("BackendConfig",),
    "ray.train.callbacks": ("UserCallback",),
    "ray.train.checkpoint": ("Checkpoint",),
    "ray.train.config": (
        "CheckpointConfig",
        "DataConfig",
        "FailureConfig",
        "LoggingConfig",
        "RunConfig",
        "ScalingConfig",
        "SyncConfig",
        "TRAIN_DATASET_KEY",
        "ValidationConfig",
        "ValidationFn",
        "ValidationTaskConfig",
    ),
    "ray.train.context": (
        "TrainContext",
        "get_all_reported_checkpoints",
        "get_checkpoint",
        "get_context",
        "get_dataset_shard",
        "get_preemption_info",
        "report",
    ),
    "ray.train.errors": (
        "ControllerError",
        "NCCLHangError",
        "PreemptionError",
        "TrainingFailedError",
        "WorkerGroupError",
    ),
    "ray.train.preemption": ("PreemptionInfo",),
    "ray.train.profiles.config": ("ProfileConfig",),
    "ray.train.reported": (
        "CheckpointConsistencyMode",
        "CheckpointUploadMode",
        "ReportedCheckpoint",
        "ReportedCheckpointStatus",
    ),
    "ray.train.result": ("Result",),
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names}

# Ray has no such names, so that `from ray.train import *` does not bring them.
_ADDITIONAL = ("ProfileConfig",)

__all__ = [name for name in sorted(_LAZY) if name not in _ADDITIONAL]


def __getattr__(name):
    module = _LAZY.get(name)
    if module is None:
        raise_missing("ray.train", name)
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__():
    return sorted({*globals(), *_LAZY})
