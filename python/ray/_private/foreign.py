"""Python functions, classes and methods that callers in other languages name."""

from __future__ import annotations

import importlib

from ray import _raylet
from ray._private.executor import actor_method
from ray._private.signature import is_coroutine


def callable_for(instance, module: str, class_name: str, name: str):
    """Returns the function, class or method that a caller of another language named.

    The results of functions and methods are converted to plain values.
    """
    if instance is not None:
        return _with_plain_result(actor_method(instance, name))
    target = importlib.import_module(module)
    for part in (class_name or name).split("."):
        target = getattr(target, part)
    if class_name:
        # Unwraps a class that is decorated with @ray.remote.
        return getattr(target, "_cls", target)
    return _with_plain_result(getattr(target, "_function", target))


def _with_plain_result(function):
    if is_coroutine(function):

        async def call(*args):
            return _raylet.plain_value(await function(*args))
    else:

        def call(*args):
            return _raylet.plain_value(function(*args))

    return call
