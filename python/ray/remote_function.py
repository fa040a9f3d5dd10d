"""`@ray.remote` on functions."""

from __future__ import annotations

from ray import _raylet
from ray._private.environment import number_from_environment
from ray._private.export import Definition
from ray._private.generators import check_generator
from ray._private.options import check_use, resources_of, validate_task
from ray._private.session import ensure_connected
from ray._private.signature import Signature, is_coroutine, is_generator
from ray._private.templates import called, placed


class RemoteFunction(_raylet.FunctionBase):
    """A function whose `.remote(...)` runs it as a task.

    `remote` itself is in C++ (binding/remote_calls.cc). It calls _prepare() for a template once
    per session, and _check_arguments() for calls that it cannot judge.
    """

    def __class_getitem__(cls, item):
        return cls

    def __init__(
        self,
        function,
        options: dict,
        definition: Definition | None = None,
        signature: Signature | None = None,
    ):
        self._function = function
        self._options = options
        self._definition = definition or Definition(function)
        self._signature = signature or Signature.of(function)
        self._function_name = f"{self._definition.module}.{self._definition.name}"
        self.__name__ = getattr(function, "__name__", self._definition.name)
        self.__qualname__ = self._definition.name
        self.__module__ = self._definition.module
        self.__doc__ = getattr(function, "__doc__", None)
        self.__wrapped__ = function

    _OWN = frozenset(
        (
            "_function",
            "_options",
            "_definition",
            "_signature",
            "_function_name",
            "__name__",
            "__qualname__",
            "__module__",
            "__doc__",
            "__wrapped__",
        )
    )

    @property
    def _default_options(self) -> dict:
        """The options that the function was decorated with."""
        return dict(self._options)

    def __call__(self, *args, **kwargs):
        raise TypeError(
            "Remote functions cannot be called directly. Instead of running "
            f"'{self._function_name}()', try '{self._function_name}.remote()'."
        )

    def options(self, **options) -> "RemoteFunction":
        """Returns the same function with other options; options not named keep their value."""
        if "max_calls" in options:
            raise ValueError("Setting 'max_calls' is not supported in '.options()'.")
        if options.get("_num_objects_per_yield", 1) not in (None, 1):
            raise ValueError("Setting '_num_objects_per_yield' is not supported in '.options()'.")
        validate_task(options)
        merged = {**self._options, **options}
        check_generator(merged.get("num_returns"), is_generator(self._function))
        return self._with(merged)

    def _with(self, options: dict) -> "RemoteFunction":
        return RemoteFunction(self._function, options, self._definition, self._signature)

    def bind(self, *args, **kwargs):
        """Returns the node of this call in a call graph (ray.dag)."""
        from ray.dag.calls import FunctionNode

        return FunctionNode(self, args, kwargs)

    def _remote(self, args=None, kwargs=None, **options):
        target = self.options(**options) if options else self
        return target.remote(*(args or ()), **(kwargs or {}))

    def _check_arguments(self, args: tuple, kwargs: dict):
        self._signature.check(args, kwargs)

    def _prepare(self):
        ensure_connected()
        options = self._options
        check_use(options)
        retries = options.get("max_retries")
        if retries is None:
            retries = number_from_environment("RAY_TASK_MAX_RETRIES", int, 3)
        calls = options.get("max_calls")
        if calls is None:
            # Libraries release what they hold of a GPU only when the process ends.
            calls = 1 if options.get("num_gpus") else 0
        place = placed(options, self.__name__, resources_of(options, 1))
        only_once = place.pop("only_once", False)
        template = _raylet.make_template(
            {
                **self._definition.describe("remote function"),
                **called(options, self._function_name, is_generator(self._function), retries),
                **place,
                "max_calls": calls,
            }
        )
        self._bind(template, *self._signature.limits(), only_once)

    def __reduce__(self):
        added = {
            name: value for name, value in self.__dict__.items() if name not in RemoteFunction._OWN
        }
        return RemoteFunction, (self._function, self._options), added or None


def make_remote_function(function, options: dict) -> RemoteFunction:
    if is_coroutine(function):
        raise ValueError(
            "'async def' should not be used for remote tasks. You can wrap the async function "
            "with `asyncio.run(f())`, or use async actors."
        )
    validate_task(options)
    check_generator(options.get("num_returns"), is_generator(function))
    return RemoteFunction(function, options)
