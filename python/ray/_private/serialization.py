"""Finds what prevents an object from being pickled.

The report is part of TypeErrors and is what ray.util.inspect_serializability prints.
"""

from __future__ import annotations

import collections
import inspect

from ray import cloudpickle


def _fails(obj) -> Exception | None:
    try:
        cloudpickle.dumps(obj)
    except Exception as error:
        return error
    return None


def _children(obj):
    """Yields (description, name, child) for everything that pickling would follow."""
    if inspect.isfunction(obj):
        closure = inspect.getclosurevars(obj)
        for kind in ("nonlocals", "globals"):
            for name, value in getattr(closure, kind).items():
                yield f"{kind[:-1]} variable {name!r}", name, value
    elif isinstance(obj, dict):
        for key, value in obj.items():
            yield f"key {key!r}", str(key), value
    elif isinstance(obj, (list, tuple, set, frozenset)):
        for index, value in enumerate(obj):
            yield f"item {index}", f"[{index}]", value
    elif hasattr(obj, "__dict__"):
        for name, value in list(vars(obj).items()):
            if not (isinstance(obj, type) and name.startswith("__")):
                yield f"attribute {name!r}", name, value


def inspect_object(
    obj, name: str, depth: int, lines: list, failures: set, parent=None, seen=None
) -> bool:
    """Whether `obj` can be pickled.

    Members that cannot go to `failures`, and the path to them to `lines`.
    """
    error = _fails(obj)
    if error is None:
        return True
    seen = seen if seen is not None else set()
    seen.add(id(obj))
    lines.append(f"!!! FAIL {name}: {type(error).__name__}: {error}")
    found = False
    if depth > 0:
        try:
            children = list(_children(obj))
        except Exception:
            children = []
        for how, child_name, child in children:
            if id(child) in seen:
                continue
            if _fails(child) is not None:
                found = True
                lines.append(f"  {how} of {name} cannot be pickled")
                inspect_object(child, child_name, depth - 1, lines, failures, obj, seen)
    if not found:
        failures.add(FailureTuple(obj, name, parent))
    return False


class FailureTuple(collections.namedtuple("FailureTuple", ("obj", "name", "parent"))):
    """A member that cannot be pickled, its name and its container; hashable in any case."""

    __slots__ = ()

    def __hash__(self):
        return hash((id(self.obj), self.name))

    def __repr__(self):
        return f"FailTuple({self.name} [obj={self.obj!r}, parent={self.parent!r}])"


def report(obj, name: str) -> str:
    lines, failures = [], set()
    inspect_object(obj, name, 3, lines, failures)
    rule = "=" * 80
    body = "\n".join(
        [
            f"Checking Serializability of {name}",
            *lines,
            "",
            "These variables cannot be pickled:",
            *(f"  {f!r}" for f in failures),
        ]
    )
    return f"{rule}\n{body}\n{rule}"


def _argument_of(call):
    """The argument of a call that cannot be pickled, else the call.

    The binding encodes a call as a tuple, or as [args, kwargs, places of references].
    """
    args, kwargs = (
        (call[0], call[1] or {}) if isinstance(call, list) and len(call) == 3 else (call, {})
    )
    return next((argument for argument in (*args, *kwargs.values()) if _fails(argument)), call)


def raise_unserializable(role: str, obj, error):
    """Raises the error for an object whose pickling failed.

    A TypeError becomes one that names the object by its role ("the argument") and has the report.
    Other errors are raised as they are: they come from the object's own methods, or interrupted
    the pickling.
    """
    if not isinstance(error, TypeError):
        raise error
    try:
        if role == "the argument" and isinstance(obj, (tuple, list)):
            obj = _argument_of(obj)
        name = getattr(obj, "__qualname__", None) or repr(obj)[:200]
        details = report(obj, name)
    except Exception:
        name, details = type(obj).__name__, ""
    raise TypeError(f"Could not serialize {role} {name}: {error}\n{details}") from error
