"""Fixtures of the tests of ray.train: runs of two CPU workers on a small cluster."""

import pytest
from train_support import assert_nothing_left


@pytest.fixture(scope="module")
def train_cluster():
    """A local cluster of 4 CPUs and 2 GPUs that are only declared, shared by a module's tests."""
    import ray

    context = ray.init(num_cpus=4, num_gpus=2)
    yield context
    ray.shutdown(wait_for_processes=True)


@pytest.fixture
def fit(train_cluster, tmp_path):
    """fit(function, workers=2, config=None, **arguments) runs it and returns the Result.

    Further arguments are those of RunConfig and of the trainer. Run folders are in tmp_path.
    """
    from ray.train import RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    trainer_arguments = ("datasets", "dataset_config", "backend_config", "scaling_config")

    def run(function, workers=2, config=None, **arguments):
        own = {name: arguments.pop(name) for name in trainer_arguments if name in arguments}
        arguments.setdefault("storage_path", str(tmp_path / "storage"))
        arguments.setdefault("name", "run")
        own.setdefault("scaling_config", ScalingConfig(num_workers=workers))
        return DataParallelTrainer(
            function, train_loop_config=config, run_config=RunConfig(**arguments), **own
        ).fit()

    yield run
    assert_nothing_left()
