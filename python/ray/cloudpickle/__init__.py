"""cloudpickle under the name that programs of Ray use, with protocol 5 by default."""

import dataclasses as _dataclasses
import io as _io
import sys as _sys
import threading as _threading
import types as _types
from pickle import PicklingError as _PicklingError
import cloudpickle as _cloudpickle
from cloudpickle import *  # noqa: F403
from cloudpickle import load, loads
from cloudpickle import __version__

from ray._private.reducers import REDUCERS as _REDUCERS


# Maps the id of an object that dataclasses compares by identity to its name in the module.
_SENTINELS = {
    id(value): name
    for name, value in vars(_dataclasses).items()
    if type(value).__name__
    in ("_FIELD_BASE", "_MISSING_TYPE", "_HAS_DEFAULT_FACTORY_CLASS", "_KW_ONLY_TYPE")
}


def _make_plain_skeleton(metaclass, name, bases, namespace, tracker_id, extra):
    return _cloudpickle.cloudpickle._lookup_class_or_track(
        tracker_id, type.__new__(metaclass, name, bases, namespace)
    )


_reduce_code_without_file = _cloudpickle.CloudPickler.dispatch_table[_types.CodeType]


def _reduce_code(code):
    make, arguments, *rest = _reduce_code_without_file(code)
    named = tuple(code.co_filename if one == "<dynamic-code>" else one for one in arguments)
    return (make, named, *rest)


class _DeepValues:
    """Lets a thread pickle values that are nested deeper than the recursion limit allows.

    Pickle recurses twice for each list or dict inside another one, so with the default limit of
    1,000 it would refuse them at 500 levels. The limit is one for all threads: the first that
    enters raises it, and the last that leaves restores it.
    """

    # The number of levels. Each takes less than a kilobyte of the thread's stack.
    LIMIT = 3000

    def __init__(self):
        # The lock is reentrant, because a signal's handler may pickle something.
        self._lock = _threading.RLock()
        self._inside = 0

    def __enter__(self):
        with self._lock:
            limit = _sys.getrecursionlimit()
            self._inside += 1
            if self._inside == 1:
                self._before = limit
                if limit < self.LIMIT:
                    _sys.setrecursionlimit(self.LIMIT)

    def __exit__(self, *_):
        with self._lock:
            self._inside -= 1
            # Other code may have set another limit meanwhile; it stays.
            if self._inside == 0 and self._before < _sys.getrecursionlimit() == self.LIMIT:
                _sys.setrecursionlimit(self._before)


_deep_values = _DeepValues()


class CloudPickler(_cloudpickle.CloudPickler):
    """Pickles functions and classes by value.

    It corrects faults of some versions of cloudpickle, which

    - leave out what a class has in common with its base, `__module__` included (before 3.1): the
      class that arrives is of the module `types`, and once it comes back it makes the sender's own
      class one of `types`;
    - copy the marks by which a dataclass knows its fields: the class that arrives has none;
    - rebuild a NamedTuple or TypedDict by deriving from what the class statement named, which is
      refused for a complete class;
    - name the file of every function `<dynamic-code>` (since 3.1.2), so that neither a traceback
      nor a profile says where the function is.
    """

    # A map of its own in front: ray.util.register_serializer() writes there, and dag/scan.py takes
    # what has a reducer in _REDUCERS for a value without nodes.
    dispatch_table = _cloudpickle.CloudPickler.dispatch_table.new_child(_REDUCERS).new_child(
        {_types.CodeType: _reduce_code}
    )

    def dump(self, obj):
        with _deep_values:
            try:
                return super().dump(obj)
            except _PicklingError as error:
                if not isinstance(error.__cause__, RecursionError):
                    raise
                raise _PicklingError(
                    "Could not pickle the object: that takes more nested calls than the recursion "
                    f"limit of {_sys.getrecursionlimit()} allows (sys.getrecursionlimit(); at "
                    f"least {_DeepValues.LIMIT} while Ray pickles). Each list or dict inside "
                    "another one takes two or more. Nest them less deeply, for example as a flat "
                    "list with indexes, or raise the limit with sys.setrecursionlimit() in the "
                    "process that pickles the object."
                ) from error.__cause__

    def reducer_override(self, obj):
        if id(obj) in _SENTINELS:
            return _SENTINELS[id(obj)]
        reduced = super().reducer_override(obj)
        if (
            reduced is not NotImplemented
            and isinstance(obj, type)
            and reduced[0].__name__ == "_make_skeleton_class"
        ):
            metaclass, name, bases, namespace, *rest = reduced[1]
            if "__module__" in obj.__dict__:
                namespace["__module__"] = obj.__module__
            # The bases of typing's and typing_extensions' classes are functions, or objects that
            # stand for a base.
            if metaclass.__name__ == "_TypedDictMeta" or not all(
                isinstance(base, type) or hasattr(base, "__origin__") for base in bases
            ):
                return (
                    _make_plain_skeleton,
                    (metaclass, name, obj.__bases__, namespace, *rest),
                    *reduced[2:],
                )
        return reduced


Pickler = CloudPickler


def dump(obj, file, protocol=None, buffer_callback=None):
    CloudPickler(file, protocol=protocol, buffer_callback=buffer_callback).dump(obj)


def dumps(obj, protocol=None, buffer_callback=None):
    with _io.BytesIO() as file:
        dump(obj, file, protocol, buffer_callback)
        return file.getvalue()
