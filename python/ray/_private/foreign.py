"""Calls between languages.

Handles to actors whose methods this program cannot know, and Python functions that other languages
call by name.
"""

from __future__ import annotations

import pickle

from ray import _raylet
from ray._private.signature import Signature, is_coroutine
from ray.actor import FOREIGN_BLOB, ActorMethod, HandleInfo, MethodInfo

PYTHON, CPP = 0, 1  # Language of common.proto


class _AnyMethod(dict):
    """The methods of an actor that declared none here: any public name, with any arguments."""

    def __contains__(self, name):
        return not name.startswith("_")

    def __missing__(self, name: str) -> MethodInfo:
        info = self[name] = MethodInfo(name, {}, Signature().pack(), False)
        return info


class ForeignHandleInfo(HandleInfo):
    """Describes an actor without a method table: it runs C++, or a C++ program created it."""

    def __init__(self, blob: bytes):
        self.blob = blob
        (
            self.language,
            self.class_name,
            self.max_task_retries,
            self.max_pending_calls,
            self.out_of_order,
        ) = pickle.loads(blob[len(FOREIGN_BLOB) :])
        self.module, self.is_async, self.shared_limit, self.recorded, self.methods = (
            "",
            False,
            0,
            True,
            _AnyMethod(),
        )
        self.method_type = ActorMethod if self.language == PYTHON else CppActorMethod
        self._templates: dict = {}


class CppActorMethod(_raylet.ForeignMethodBase, ActorMethod):
    """A method of a C++ actor. It takes positional arguments of plain types, and ObjectRefs."""


def handle_blob_of(
    language: int,
    class_name: str,
    max_task_retries: int = 0,
    max_pending_calls: int = -1,
    out_of_order: bool = False,
) -> bytes:
    return FOREIGN_BLOB + pickle.dumps(
        (language, class_name, max_task_retries, max_pending_calls, out_of_order), protocol=5
    )


def callable_for(instance, module: str, class_name: str, name: str):
    """Returns the function, class or method that a caller of another language named.

    The results of functions and methods are converted to plain values.
    """
    if instance is not None:
        from ray._private.executor import actor_method

        return _with_plain_result(actor_method(instance, name))
    import importlib

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
