"""Handles to actors, their methods, and what they tell of the actor; `ray.actor` makes the actors.

Handles of this program's own classes have a method table. Those to actors of other languages have
none.
"""

from __future__ import annotations

import pickle
from collections import namedtuple

from ray import _raylet
from ray._private.generators import check_generator
from ray._private.options import validate_method
from ray._private.reducers import REDUCERS
from ray._private.session import ensure_connected
from ray._private.signature import Signature
from ray._private.templates import called

# The numbers of Language in common.proto.
PYTHON, CPP = 0, 1
BUILTIN_METHODS = ("__ray_ready__", "__ray_call__", "__ray_terminate__")
# The bytes of ForeignFacts begin with this.
_FOREIGN = b"foreign:"


class MethodInfo:
    """Holds what a caller must know about one method; plain data that handles contain."""

    __slots__ = ("name", "options", "signature", "generator")

    def __init__(self, name: str, options: dict, signature: tuple, generator: bool):
        self.name, self.options, self.generator = name, options, generator
        self.signature = Signature._make(signature)

    def pack(self) -> tuple:
        return self.name, self.options, tuple(self.signature), self.generator


# The data of an actor of Python as they travel in handles: a plain tuple in this order. `methods`
# has MethodInfo.pack() of each method.
HandleFacts = namedtuple(
    "HandleFacts",
    (
        "module",
        "class_name",
        "methods",
        "max_task_retries",
        "max_pending_calls",
        "out_of_order",
        "is_async",
        "shared_limit",
        "recorded",
    ),
)
# The data of an actor whose methods are not known here: it runs C++, or a C++ program made it.
ForeignFacts = namedtuple(
    "ForeignFacts",
    ("language", "class_name", "max_task_retries", "max_pending_calls", "out_of_order"),
    defaults=(0, -1, False),
)


def packed(facts: HandleFacts | ForeignFacts) -> bytes:
    prefix = _FOREIGN if isinstance(facts, ForeignFacts) else b""
    return prefix + pickle.dumps(tuple(facts), protocol=5)


class _AnyMethod(dict):
    """The methods of an actor that declared none here: any public name, with any arguments."""

    def __contains__(self, name):
        return not name.startswith("_")

    def __missing__(self, name: str) -> MethodInfo:
        info = self[name] = MethodInfo(name, {}, Signature(), False)
        return info


class HandleInfo:
    """Data shared by all handles to the actors of one class with one set of options.

    It travels as bytes inside pickled handles.
    """

    _known: dict[bytes, "HandleInfo"] = {}

    def __init__(self, blob: bytes, language: int, facts: HandleFacts, methods: dict):
        self.blob, self.language, self.facts, self.methods = blob, language, facts, methods
        self.method_type = ActorMethod if language == PYTHON else CppActorMethod
        self._templates: dict = {}

    @property
    def class_name(self) -> str:
        return self.facts.class_name

    @classmethod
    def of(cls, blob: bytes) -> "HandleInfo":
        info = cls._known.get(blob)
        if info is None:
            read = cls._foreign if blob.startswith(_FOREIGN) else cls._python
            info = cls._known[blob] = read(blob)
        return info

    @classmethod
    def _python(cls, blob: bytes) -> "HandleInfo":
        facts = HandleFacts._make(pickle.loads(blob))
        return cls(blob, PYTHON, facts, {info[0]: MethodInfo(*info) for info in facts.methods})

    @classmethod
    def _foreign(cls, blob: bytes) -> "HandleInfo":
        known = ForeignFacts._make(pickle.loads(blob[len(_FOREIGN) :]))
        facts = HandleFacts(
            module="",
            class_name=known.class_name,
            methods=[],
            max_task_retries=known.max_task_retries,
            max_pending_calls=known.max_pending_calls,
            out_of_order=known.out_of_order,
            is_async=False,
            shared_limit=0,
            recorded=True,
        )
        return cls(blob, known.language, facts, _AnyMethod())

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
                "module": self.facts.module,
                "function_name": name,
                "class_name": self.facts.class_name,
                **called(
                    merged,
                    name,
                    method.generator,
                    self.retries(merged),
                    recorded=self.facts.recorded,
                    shared_limit=self.facts.shared_limit,
                ),
                "concurrency_group": merged.get("concurrency_group") or "",
            }
        )
        if simple:
            self._templates[name] = (session, template)
        return template

    def retries(self, merged: dict) -> int:
        retries = merged.get("max_task_retries")
        return self.facts.max_task_retries if retries is None else retries


def of_this_session(core) -> bool:
    """Tells whether a handle is of the session that this process has now, and not of an earlier
    one."""
    return core.session() == _raylet.session()


def handle_outlived(actor: str, remedy: str = "") -> Exception:
    """The error for a handle of an earlier session of this process."""
    from ray.exceptions import ActorHandleNotFoundError

    return ActorHandleNotFoundError(
        f"The handle to {actor} belongs to a session that was shut down{remedy}."
    )


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
        facts = info.facts
        self._target(core, info.retries(merged), facts.max_pending_calls, facts.out_of_order)

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
        if not of_this_session(self._core):
            raise handle_outlived(f"actor {self._core.id().hex()}", ": create the actor again")
        self._bind(
            self._info.template(self._name, self._options),
            *self._info.methods[self._name].signature.limits(),
        )

    def __repr__(self):
        return f"ActorMethod({self._info.class_name}.{self._name})"

    def __reduce__(self):
        # Pickling the handle counts the reference.
        return _rebuild_method, (ActorHandle(self._core, self._info), self._name, self._options)


class CppActorMethod(_raylet.ForeignMethodBase, ActorMethod):
    """A method of a C++ actor. It takes positional arguments of plain types, and ObjectRefs."""


def _rebuild_method(handle: "ActorHandle", name: str, options: dict) -> ActorMethod:
    return handle._info.method_type(handle._core, handle._info, name, options)


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
        # The method is kept in the instance, so that the next access does not come here. It holds
        # the actor and not this handle, because that would be a cycle.
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
for _name in BUILTIN_METHODS:

    def _builtin(self, _name=_name):
        return ActorMethod(self._core, self._info, _name)

    setattr(ActorHandle, _name, property(_builtin))
del _name, _builtin

_raylet._set_actor_handle_type(ActorHandle)


def reduce_counted(handle: ActorHandle) -> tuple:
    """Pickles a handle so that it keeps the actor alive: as long as the value that it is a part of,
    or else as long as this process."""
    return _rebuild_handle, (handle._core.id(), handle._info.blob, handle._core.handle())


def named_handle(name: str, namespace: str) -> ActorHandle | None:
    """Returns a handle to a named actor, which does not keep the actor alive; None when there is no
    such actor."""
    found = _raylet.get_actor(name, namespace)
    if found is None:
        return None
    return described_handle(*found)


def described_handle(core, info: dict) -> ActorHandle:
    """Returns a handle to the actor that the head has described; `info` is a proto ActorInfo."""
    blob = info["handle_blob"] or packed(ForeignFacts(info["language"], info["class_name"]))
    return ActorHandle(core, HandleInfo.of(blob))


def _rebuild_handle(actor_id: bytes, blob: bytes, handle_ref) -> ActorHandle:
    return ActorHandle(_raylet.ActorCore(actor_id, handle_ref), HandleInfo.of(blob))


def _rebuild_uncounted(actor_id: bytes, blob: bytes) -> ActorHandle:
    return ActorHandle(_raylet.find_actor(actor_id), HandleInfo.of(blob))


# As in Ray, an actor lives on as long as a process that has pickled a handle of it.
REDUCERS[ActorHandle] = reduce_counted
# The names under which programs know them, and by which they are pickled.
ActorHandle.__module__ = ActorMethod.__module__ = "ray.actor"
