"""`@ray.remote` on classes, and handles to actors."""

from __future__ import annotations

import functools
import types

from ray import _raylet
from ray._private.actor_handle import (
    BUILTIN_METHODS,
    ActorHandle,
    ActorMethod,
    HandleFacts,
    HandleInfo,
    MethodInfo,
    described_handle,
    packed,
)
from ray._private.export import Definition, shown_module
from ray._private.generators import shared_limit_of
from ray._private.options import (
    METHOD_DECORATOR,
    check_creation,
    groups_of,
    pending_limit,
    portable,
    resources_of,
    validate_actor,
    validate_method,
)
from ray._private.session import current_task_info, ensure_connected, global_worker
from ray._private.signature import Signature, is_coroutine, is_generator
from ray._private.templates import placed

__all__ = [
    "ActorClass",
    "ActorClassInheritanceException",
    "ActorClassMetadata",
    "ActorHandle",
    "ActorMethod",
    "ActorProxy",
    "exit_actor",
    "method",
]


class ActorClassInheritanceException(TypeError):
    """A class was derived from an actor class."""


def method(*args, **options):
    """Sets options of an actor's method: @ray.method(num_returns=2).

    Further options are concurrency_group, max_task_retries and retry_exceptions.
    """

    def annotate_method(function):
        function.__ray_method_options__ = options
        return function

    if len(args) == 1 and not options and callable(args[0]):
        return annotate_method(args[0])
    assert not args, (
        "The @ray.method decorator takes keyword arguments only, e.g. '@ray.method(num_returns=2)'."
    )
    for key in options:
        assert key in METHOD_DECORATOR, (
            f"The @ray.method decorator accepts {METHOD_DECORATOR}, got {key!r}."
        )
    validate_method(options)
    return annotate_method


def exit_actor():
    """Ends the current actor: it is not restarted, and later calls fail with ActorDiedError.

    Raises TypeError outside of an actor.
    """
    # Imported only here, because drivers do not need it.
    from ray._private.actor_end import leave

    task = current_task_info()
    if not task or "actor_id" not in task:
        raise TypeError(
            "exit_actor API is called on a non-actor worker. Call this API inside an actor "
            "methods if you'd like to exit the actor gracefully."
        )
    leave("exit_actor() was called")


def _methods_of(cls) -> dict[str, MethodInfo]:
    methods = {}
    for name in dir(cls):
        owner, value = next(
            ((base, base.__dict__[name]) for base in cls.__mro__ if name in base.__dict__),
            (object, None),
        )
        if owner is object:
            continue
        bound = 1
        if isinstance(value, staticmethod):
            value, bound = value.__func__, 0
        elif isinstance(value, classmethod):
            value = value.__func__
        elif not hasattr(value, "__code__") and isinstance(
            made := getattr(cls, name), types.FunctionType
        ):
            # The method comes from a functools.partialmethod or singledispatchmethod.
            value = made
        if not hasattr(value, "__code__"):
            if not callable(value) or isinstance(value, type):
                continue
        methods[name] = MethodInfo(
            name,
            portable(getattr(value, "__ray_method_options__", {})),
            Signature.of(value, bound),
            is_generator(_plain_function(cls, name)),
        )
    for name in BUILTIN_METHODS:
        methods.setdefault(name, MethodInfo(name, {}, Signature(), False))
    return methods


class ActorProxy:
    """ActorProxy[TheClass] annotates handles for type checkers, see actor.pyi."""

    def __class_getitem__(cls, item):
        return cls


class ActorClassMetadata:
    """Facts about an actor class.

    `modified_class` is the decorated class, which tests can use without a cluster.
    """

    def __init__(self, cls: type):
        self.modified_class = cls
        self.class_name = cls.__name__
        self.is_cross_language = False


class ActorClass:
    """A class whose `.remote(...)` creates an actor."""

    def __class_getitem__(cls, item):
        return cls

    def __init__(
        self, cls, options: dict, definition: Definition | None = None, methods: dict | None = None
    ):
        self._cls = cls
        self._options = options
        self._known = _facts_of(cls, definition, methods) if definition and methods else None
        self._name()

    def _name(self):
        self.__name__ = self._cls.__name__
        self.__qualname__ = self._cls.__qualname__
        self.__module__ = self._cls.__module__
        self.__doc__ = self._cls.__doc__

    def _facts(self) -> tuple[Definition, dict, bool]:
        """Returns the definition, the methods, and whether the class is an asyncio actor's.

        They are computed on first use: a class that refers to itself arrives at a worker, and this
        object with it, before its body does.
        """
        if self._known is None:
            self._name()
            self._known = _facts_of(self._cls, Definition(self._cls), _methods_of(self._cls))
        return self._known

    @property
    def _default_options(self) -> dict:
        """The options that the class was decorated with."""
        return dict(self._options)

    @property
    def _definition(self) -> Definition:
        return self._facts()[0]

    @property
    def _methods(self) -> dict[str, MethodInfo]:
        return self._facts()[1]

    @property
    def _is_async(self) -> bool:
        return self._facts()[2]

    def __getattr__(self, name):
        """Attributes of the class itself: constants, static and class methods."""
        cls = self.__dict__.get("_cls")
        if cls is None or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"'ActorClass' object has no attribute {name!r}")
        return getattr(cls, name)

    @property
    def __ray_metadata__(self) -> "ActorClassMetadata":
        return ActorClassMetadata(self._cls)

    @property
    def __ray_actor_class__(self) -> type:
        return self._cls

    def __call__(self, *args, **kwargs):
        raise TypeError(
            f"Actors cannot be instantiated directly. Instead of '{self.__name__}()', use "
            f"'{self.__name__}.remote()'."
        )

    def __mro_entries__(self, bases):
        raise ActorClassInheritanceException(
            f"Attempted to define a class that inherits from the actor class {self.__name__}. "
            "Inheriting from actor classes is "
            "not currently supported. You can instead inherit from a non-actor base class and "
            "make the derived class an actor class (with @ray.remote)."
        )

    def options(self, **options) -> "ActorClass":
        """Returns the same class with other options; options not named keep their value."""
        if "concurrency_groups" in options:
            raise ValueError("Setting 'concurrency_groups' is not supported in '.options()'.")
        merged = {**self._options, **options}
        validate_actor(merged)
        return self._with(merged)

    def _with(self, options: dict) -> "ActorClass":
        made = ActorClass(self._cls, options)
        made._known = self._facts()
        return made

    def remote(self, *args, **kwargs) -> ActorHandle:
        """Creates an actor with these constructor arguments; returns its handle at once."""
        ensure_connected()
        init = self._methods.get("__init__")
        if init:
            init.signature.check(args, kwargs)
        elif args or kwargs:
            raise TypeError(f"{self.__name__}() takes no arguments")
        missing = getattr(self._cls, "__abstractmethods__", None)
        if missing:
            raise TypeError(
                f"Can't instantiate abstract class {self.__name__} with abstract "
                f"method{'s' * (len(missing) > 1)} {', '.join(sorted(missing))}"
            )
        options = self._options
        check_creation(options)
        spec = self._spec(options, global_worker)
        get_if_exists = bool(options.get("get_if_exists"))
        core, existing = _raylet.create_actor(spec, get_if_exists, args, kwargs)
        if existing is not None:
            # The actor of that name may be one of another class, or have other options.
            return described_handle(core, existing)
        return ActorHandle(core, HandleInfo.of(spec["handle_blob"]))

    def _remote(self, args=None, kwargs=None, **options):
        target = self.options(**options) if options else self
        return target.remote(*(args or ()), **(kwargs or {}))

    def bind(self, *args, **kwargs):
        """Returns the node of such an actor in a call graph (ray.dag)."""
        from ray.dag.calls import ClassNode

        return ClassNode(self, args, kwargs)

    def _spec(self, options: dict, worker) -> dict:
        """The fields of proto ActorSpec."""
        concurrency = options.get("max_concurrency") or (1000 if self._is_async else 1)
        out_of_order = options.get("allow_out_of_order_execution")
        unordered = self._is_async or concurrency > 1
        if out_of_order is False and unordered:
            raise ValueError(
                "allow_out_of_order_execution=False is not possible for async or threaded actors"
            )
        out_of_order = unordered if out_of_order is None else out_of_order
        # Without any resource option an actor needs a free CPU to be placed but holds none; with
        # one of the others it holds a CPU.
        others = (
            options.get("num_gpus") or options.get("resources") or options.get("accelerator_type")
        )
        held = resources_of(options, 1 if others else 0)
        placement = resources_of(options, 1)
        facts = HandleFacts(
            module=shown_module(self.__module__),
            class_name=self.__name__,
            methods=[info.pack() for info in self._methods.values()],
            max_task_retries=options.get("max_task_retries") or 0,
            max_pending_calls=pending_limit(options),
            out_of_order=out_of_order,
            is_async=self._is_async,
            shared_limit=shared_limit_of(options),
            recorded=options.get("enable_task_events", True),
        )
        return {
            "name": options.get("name") or "",
            "ray_namespace": options.get("namespace") or worker.namespace,
            "detached": options.get("lifetime") == "detached"
            or (options.get("lifetime") is None and worker.default_actor_lifetime == "detached"),
            "creation": {
                **self._definition.describe("actor class"),
                "function_name": "__init__",
                "class_name": self.__name__,
                "name": "__init__",
                **placed(options, self.__name__, held, placement),
                "num_returns": 0,
                "generator_backpressure": facts.shared_limit,
                "unrecorded": not facts.recorded,
            },
            "placement": placement,
            "max_restarts": options.get("max_restarts") or 0,
            "max_task_retries": facts.max_task_retries,
            "max_concurrency": concurrency,
            "concurrency_groups": groups_of(options),
            "asyncio": self._is_async,
            "out_of_order": out_of_order,
            "handle_blob": packed(facts),
            "class_name": self.__name__,
            "max_pending_calls": facts.max_pending_calls,
        }

    def __repr__(self):
        return f"ActorClass({self.__name__})"

    def __reduce__(self):
        return ActorClass, (self._cls, self._options)


def _facts_of(
    cls, definition: Definition, methods: dict[str, MethodInfo]
) -> tuple[Definition, dict, bool]:
    return (
        definition,
        methods,
        any(
            is_coroutine(_plain_function(cls, name))
            for name in methods
            if name not in BUILTIN_METHODS
        ),
    )


def _plain_function(cls, name: str):
    value = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
    value = getattr(value, "__func__", value)
    while not hasattr(value, "__code__") and isinstance(
        getattr(value, "func", None), (types.FunctionType, functools.partial)
    ):
        # The method comes from a functools.partialmethod or singledispatchmethod.
        value = value.func
    return value


def make_actor_class(cls, options: dict) -> ActorClass:
    validate_actor(options)
    made = ActorClass(cls, options)
    made._facts()
    return made
