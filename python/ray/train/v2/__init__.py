"""The path under which programs import the base class of trainers."""

from ray._private.absent import raise_missing


def __getattr__(name):
    raise_missing("ray.train.v2", name)
