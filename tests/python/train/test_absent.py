"""Parts of ray.train that this release lacks: importing one says so by name."""

import importlib
import importlib.util

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "ray.train.lightning",
        "ray.train.tensorflow",
        "ray.train.xgboost",
        "ray.train.lightgbm",
        "ray.train.horovod",
        "ray.train.huggingface",
        "ray.train.v2.jax",
        "ray.train.torch.xla",
    ],
)
def test_absent_modules(name):
    if name.startswith("ray.train.torch"):
        pytest.importorskip("torch")
    with pytest.raises(ModuleNotFoundError, match=f"{name}: not in this release"):
        importlib.import_module(name)
    assert importlib.util.find_spec(name) is None


def test_modules_below_absent_ones():
    with pytest.raises(ModuleNotFoundError, match="ray.train.huggingface: not in this release"):
        importlib.import_module("ray.train.huggingface.transformers")
    with pytest.raises(ModuleNotFoundError, match="ray.tune: not in this release"):
        importlib.import_module("ray.tune.integration.ray_train")


def test_absent_attributes():
    pytest.importorskip("torch")
    import ray.train.torch

    with pytest.raises(NotImplementedError, match="ray.train.torch.xla: not in this release"):
        ray.train.torch.xla
    assert not hasattr(ray.train.torch, "nonsense")
