"""The old path of trainers' base classes: it can be imported, but nothing in it can be made."""

from __future__ import annotations


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'ray.train.trainer' has no attribute {name!r}")
    raise AttributeError(
        f"ray.train.trainer.{name}: the classes of this module were replaced by ray.train.torch."
        "TorchTrainer and ray.train.v2.api.data_parallel_trainer.DataParallelTrainer."
    )
