"""`@ray.remote` on classes, and handles to actors."""

from __future__ import annotations

import functools
import pickle
import types

from ray import _raylet
from ray._private.export import Definition, shown_module
from ray._private.generators import check_generator, limit_of, returns_of, shared_limit_of
from ray._private.options import (
    METHOD_DECORATOR,
    check_creation,
    group_of,
    groups_of,
    pending_limit,
    resources_of,
    retry_of,
    runtime_env_of,
    strategy_of,
    validate_actor,
    validate_method,
)
from ray._private.session import current_task_info, ensure_connected, global_worker
from ray._private.signature import Signature, is_coroutine, is_generator

# Prefix of handle blobs without a method table, see _private/foreign.py.
FOREIGN_BLOB = b"foreign:"
_BUILTIN_METHODS = ("__ray_ready__", "__ray_call__", "__ray_terminate__")


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
    from ray._private.executor import leave

    task = current_task_info()
    if not task or "actor_id" not in task:
        raise TypeError(
            "exit_actor API is called on a non-actor worker. Call this API inside an actor "
            "methods if you'd like to exit the actor gracefully."
        )
    leave("exit_actor() was called")


class MethodInfo:
    """Holds what a caller must know about one method; plain data that handles contain."""

    __slots__ = ("name", "options", "signature", "generator")

    def __init__(self, name: str, options: dict, signature: tuple, generator: bool):
        self.name, self.options, self.generator = name, options, generator
        self.signature = Signature(*signature)

    def pack(self) -> tuple:
        return self.name, self.options, self.signature.pack(), self.generator


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
            value = made  # From a functools.partialmethod or singledispatchmethod.
        if not hasattr(value, "__code__"):
            if not callable(value) or isinstance(value, type):
                continue
        methods[name] = MethodInfo(
            name,
            dict(getattr(value, "__ray_method_options__", {})),
            Signature.of(value, bound).pack(),
            is_generator(_plain_function(cls, name)),
        )
    for name in _BUILTIN_METHODS:
        methods.setdefault(name, MethodInfo(name, {}, Signature().pack(), False))
    return methods


class HandleInfo:
    """Data shared by all handles to the actors of one class with one set of options.

    It travels as bytes inside pickled handles.
    """

    _known: dict[bytes, "HandleInfo"] = {}
    language = 0  # Language of common.proto

    def __init__(self, blob: bytes):
        self.blob = blob
        fields = pickle.loads(blob)
        (
            self.module,
            self.class_name,
            methods,
            self.max_task_retries,
            self.max_pending_calls,
            self.out_of_order,
            self.is_async,
            self.shared_limit,
            self.recorded,
        ) = fields
        self.methods = {info[0]: MethodInfo(*info) for info in methods}
        self._templates: dict = {}

    @classmethod
    def of(cls, blob: bytes) -> "HandleInfo":
        info = cls._known.get(blob)
        if info is None:
            info = cls._known[blob] = (
                cls._foreign(blob) if blob.startswith(FOREIGN_BLOB) else HandleInfo(blob)
            )
        return info

    @staticmethod
    def _foreign(blob: bytes) -> "HandleInfo":
        from ray._private.foreign import ForeignHandleInfo

        return ForeignHandleInfo(blob)

    def template(self, name: str, options: dict):
        """The template of a method with these options.

        Without options it is made once per session.
        """
        session = _raylet.session()
        simple = not options
        if simple:
            known = self._templates.get(name)
            if known and known[0] == session:
                return known[1]
        method = self.methods[name]
        merged = {**method.options, **options}
        template = _raylet.make_template(
            {
                "language": self.language,
                "module": self.module,
                "function_name": name,
                "class_name": self.class_name,
                "name": merged.get("name") or name,
                "num_returns": returns_of(merged.get("num_returns"), method.generator),
                "generator_backpressure": limit_of(merged, self.shared_limit),
                "concurrency_group": merged.get("concurrency_group") or "",
                "max_retries": self.retries(merged),
                **retry_of(merged),
                "unrecorded": not merged.get("enable_task_events", self.recorded),
            }
        )
        if simple:
            self._templates[name] = (session, template)
        return template

    def retries(self, merged: dict) -> int:
        retries = merged.get("max_task_retries")
        return self.max_task_retries if retries is None else retries


class ActorMethod(_raylet.MethodBase):
    """handle.method: `.remote(...)` calls it (in C++: binding/remote_calls.cc)."""

    def __class_getitem__(cls, item):
        return cls

    def __init__(self, core, info: HandleInfo, name: str, options: dict | None = None):
        self._core = core
        self._info = info
        self._name = name
        self._options = options or {}
        merged = {**info.methods[name].options, **self._options}
        self._target(core, info.retries(merged), info.max_pending_calls, info.out_of_order)

    def __call__(self, *args, **kwargs):
        raise TypeError(
            "Actor methods cannot be called directly. Instead of running "
            f"'object.{self._name}()', try 'object.{self._name}.remote()'."
        )

    def options(self, **options) -> "ActorMethod":
        """Returns the same method with other options for its calls."""
        validate_method(options)
        check_generator(options.get("num_returns"), self._info.methods[self._name].generator)
        return type(self)(self._core, self._info, self._name, {**self._options, **options})

    def bind(self, *args, **kwargs):
        """Returns the node of this call in a call graph (ray.dag)."""
        from ray.dag.calls import bind_method

        return bind_method(self, args, kwargs)

    def _remote(self, args=None, kwargs=None, **options):
        target = self.options(**options) if options else self
        return target.remote(*(args or ()), **(kwargs or {}))

    def _check_arguments(self, args: tuple, kwargs: dict):
        self._info.methods[self._name].signature.check(args, kwargs)

    def _prepare(self):
        ensure_connected()
        if self._core.session() != _raylet.session():
            from ray.exceptions import ActorHandleNotFoundError

            raise ActorHandleNotFoundError(
                f"The handle to actor {self._core.id().hex()} belongs to a session that was shut "
                "down: create the actor again."
            )
        self._bind(
            self._info.template(self._name, self._options),
            *self._info.methods[self._name].signature.limits(),
        )

    def __repr__(self):
        return f"ActorMethod({self._info.class_name}.{self._name})"

    def __reduce__(self):
        # Pickling the handle counts the reference.
        return _rebuild_method, (ActorHandle(self._core, self._info), self._name, self._options)


def _rebuild_method(handle: "ActorHandle", name: str, options: dict) -> ActorMethod:
    return handle._info.method_type(handle._core, handle._info, name, options)


HandleInfo.method_type = ActorMethod


class ActorHandle:
    """A caller's end of an actor. An actor that is not detached ends with its last handle."""

    def __class_getitem__(cls, item):
        return cls

    def __init__(self, core, info: HandleInfo):
        self._core = core
        self._info = info

    @property
    def _actor_id(self):
        from ray._private.ids import ActorID

        return ActorID(self._core.id())

    @property
    def _ray_actor_id(self):
        return self._actor_id

    def __getattr__(self, name):
        if name.startswith("_ray_") or name not in self._info.methods:
            raise AttributeError(f"'{self._info.class_name}' object has no attribute '{name}'")
        # Kept in the instance, so that the next access does not come here. The method holds the
        # actor and not this handle, which would be a cycle.
        value = self.__dict__[name] = self._info.method_type(self._core, self._info, name)
        return value

    def __dir__(self):
        return sorted(self._info.methods)

    def __repr__(self):
        return f"Actor({self._info.class_name}, {self._core.id().hex()})"

    def __hash__(self):
        return hash(self._core.id())

    def __eq__(self, other):
        return type(other) is ActorHandle and self._core.id() == other._core.id()

    def __reduce__(self):
        # As in Ray, plain pickle counts a handle only as a part of a value.
        if _raylet.collecting_refs():
            return reduce_counted(self)
        return _rebuild_uncounted, (self._core.id(), self._info.blob)


# Defined as properties, since __getattr__ is only consulted for names that `object` lacks.
for _name in _BUILTIN_METHODS:

    def _builtin(self, _name=_name):
        return ActorMethod(self._core, self._info, _name)

    setattr(ActorHandle, _name, property(_builtin))
del _name, _builtin

_raylet._set_actor_handle_type(ActorHandle)


def reduce_counted(handle: ActorHandle) -> tuple:
    """Pickles a handle so that it keeps the actor alive: as long as the value that it is a part of,
    or else as long as this process."""
    return _rebuild_handle, (handle._core.id(), handle._info.blob, handle._core.handle())


def _rebuild_handle(actor_id: bytes, blob: bytes, handle_ref) -> ActorHandle:
    return ActorHandle(_raylet.ActorCore(actor_id, handle_ref), HandleInfo.of(blob))


def _rebuild_uncounted(actor_id: bytes, blob: bytes) -> ActorHandle:
    return ActorHandle(_raylet.find_actor(actor_id), HandleInfo.of(blob))


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
        core = _raylet.create_actor(spec, bool(options.get("get_if_exists")), args, kwargs)
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
        pending = pending_limit(options)
        recorded = options.get("enable_task_events", True)
        blob = pickle.dumps(
            (
                shown_module(self.__module__),
                self.__name__,
                [info.pack() for info in self._methods.values()],
                options.get("max_task_retries") or 0,
                pending,
                out_of_order,
                self._is_async,
                shared_limit_of(options),
                recorded,
            ),
            protocol=5,
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
                "resources": held,
                **strategy_of(options),
                **group_of(options, self.__name__, held, placement),
                "runtime_env": runtime_env_of(options),
                "num_returns": 0,
                "generator_backpressure": shared_limit_of(options),
                "unrecorded": not recorded,
            },
            "placement": placement,
            "max_restarts": options.get("max_restarts") or 0,
            "max_task_retries": options.get("max_task_retries") or 0,
            "max_concurrency": concurrency,
            "concurrency_groups": groups_of(options),
            "asyncio": self._is_async,
            "out_of_order": out_of_order,
            "handle_blob": blob,
            "class_name": self.__name__,
            "max_pending_calls": pending,
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
            if name not in _BUILTIN_METHODS
        ),
    )


def _plain_function(cls, name: str):
    value = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
    value = getattr(value, "__func__", value)
    while not hasattr(value, "__code__") and isinstance(
        getattr(value, "func", None), (types.FunctionType, functools.partial)
    ):
        value = value.func  # From a functools.partialmethod or singledispatchmethod.
    return value


def make_actor_class(cls, options: dict) -> ActorClass:
    validate_actor(options)
    made = ActorClass(cls, options)
    made._facts()
    return made
