"""Calls of functions and actors written in C++.

The C++ code is a shared library that registers its functions with RAY_REMOTE (cpp/README.md) and
lies in a directory of the job's `code_search_path`:

    ray.init(job_config=ray.job_config.JobConfig(code_search_path=["/path/to/libraries"]))
    ref = ray.cross_language.cpp_function("Plus").remote(1, 2)
    counter = ray.cross_language.cpp_actor_class("Counter::FactoryCreate", "Counter").remote(0)
    ref = counter.Add.remote(3)

Arguments and results are None, bool, int (64 bits), float, str, bytes, list, tuple (arrives as a
list), dict and ObjectRefs; an ObjectRef given as an argument is replaced by its value. An
exception of a C++ function becomes a RayTaskError whose cause is a CrossLanguageError. C++ code
cannot be interrupted: ray.cancel() keeps a call from starting but lets a running one end; with
force=True it ends the process of a running call.
"""

from __future__ import annotations

from typing import Any

from ray import _raylet
from ray._private.absent import not_in_release
from ray._private.actor_handle import CPP, ActorHandle, ForeignFacts, MethodInfo, packed
from ray._private.session import ensure_connected, global_worker
from ray._private.signature import Signature
from ray.actor import ActorClass
from ray.remote_function import RemoteFunction

__all__ = ["cpp_actor_class", "cpp_function", "java_actor_class", "java_function"]


def cpp_function(function_name: str) -> CppFunction:
    """Returns the remote function registered as `RAY_REMOTE(function_name)`.

    It has `.options(...)` like a Python function.
    """
    return CppFunction(_text("function_name", function_name))


def cpp_actor_class(create_function_name: str, class_name: str) -> CppActorClass:
    """Returns an actor class whose objects are made by `create_function_name`.

    That is the name of a registered factory function ("Counter::FactoryCreate"); the methods are
    those registered as `&class_name::Method`.
    """
    return CppActorClass(
        _text("create_function_name", create_function_name), _text("class_name", class_name)
    )


def java_function(class_name: str, function_name: str) -> JavaCallable:
    """Returns an object whose `.remote()` only raises, because there is no Java.

    Like that of a C++ function it connects the driver first, which may start a cluster. It raises
    ValueError in a job without a `code_search_path`, and NotImplementedError in others.
    """
    return JavaCallable(
        f"{_text('class_name', class_name)}.{_text('function_name', function_name)}"
    )


def java_actor_class(class_name: str) -> JavaCallable:
    """Returns an object whose `.remote()` only raises, as that of java_function() does."""
    return JavaCallable(_text("class_name", class_name))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    return value


def _require_code_search_path() -> None:
    ensure_connected()
    if not global_worker.code_search_path:
        raise ValueError(
            "Cross language feature needs --load-code-from-local to be set: name the directories "
            "of the libraries with "
            "ray.init(job_config=ray.job_config.JobConfig(code_search_path=[...]))."
        )


class _CppDefinition:
    """The definition of a C++ function for a template: its name in RAY_REMOTE."""

    module = ""

    def __init__(self, name: str):
        self.name = name

    def describe(self, kind: str) -> dict:
        return {"language": CPP, "function_name": self.name}


class CppFunction(_raylet.ForeignFunctionBase, RemoteFunction):
    """A registered C++ function; `.remote(...)` runs it as a task in a C++ worker."""

    def __init__(self, name: str, options: dict | None = None):
        RemoteFunction.__init__(self, None, options or {}, _CppDefinition(name), Signature())
        self._function_name = name

    def _with(self, options: dict) -> CppFunction:
        _check_retries(options)
        return CppFunction(self._definition.name, options)

    def _prepare(self) -> None:
        _require_code_search_path()
        RemoteFunction._prepare(self)

    def __reduce__(self):
        return CppFunction, (self._definition.name, self._options)


def _check_retries(options: dict) -> None:
    if isinstance(options.get("retry_exceptions"), (list, tuple)) and options["retry_exceptions"]:
        raise ValueError(
            "retry_exceptions of a C++ function is True or False: classes of exceptions are "
            "Python's"
        )


class CppActorClass(ActorClass):
    """A C++ class whose `.remote(...)` creates an actor in a C++ worker."""

    def __init__(self, create_function_name: str, class_name: str, options: dict | None = None):
        ActorClass.__init__(
            self,
            type(class_name, (), {"__module__": ""}),
            options or {},
            _CppDefinition(create_function_name),
            {"__init__": MethodInfo("__init__", {}, Signature(), False)},
        )

    def _with(self, options: dict) -> CppActorClass:
        return CppActorClass(self._definition.name, self.__name__, options)

    def remote(self, *args: Any, **kwargs: Any) -> ActorHandle:
        """Creates an actor with arguments of its factory function; returns its handle at once."""
        _require_code_search_path()
        return ActorClass.remote(self, *args, **kwargs)

    def _spec(self, options: dict, worker) -> dict:
        spec = ActorClass._spec(self, options, worker)
        spec["creation"].update(function_name=self._definition.name, class_name="")
        facts = ForeignFacts(
            language=CPP,
            class_name=self.__name__,
            max_task_retries=spec["max_task_retries"],
            max_pending_calls=spec["max_pending_calls"],
            out_of_order=spec["out_of_order"],
        )
        spec["handle_blob"] = packed(facts)
        return spec

    def __reduce__(self):
        return CppActorClass, (self._definition.name, self.__name__, self._options)


class JavaCallable:
    """A Java function or class, which only raises the errors of calling it."""

    def __init__(self, name: str):
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            f"Java functions and classes cannot be called directly. Instead of '{self._name}()', "
            "try '.remote()'."
        )

    def options(self, **options: Any) -> JavaCallable:
        return self

    def remote(self, *args: Any, **kwargs: Any) -> None:
        _require_code_search_path()
        raise not_in_release(f"Java ({self._name})")
