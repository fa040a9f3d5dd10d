"""The old path of DataParallelTrainer: it can be imported, but not made."""

from __future__ import annotations


class DataParallelTrainer:
    """Raises DeprecationWarning that names the new path."""

    def __init__(self, *args, **kwargs):
        raise DeprecationWarning(
            "ray.train.data_parallel_trainer.DataParallelTrainer was replaced by "
            "ray.train.v2.api.data_parallel_trainer.DataParallelTrainer; import that class."
        )
