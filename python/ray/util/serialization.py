"""ray.util.register_serializer: defines how this process pickles a class."""

from __future__ import annotations

from typing import Any, Callable

from ray.cloudpickle import CloudPickler

_registered: set[type] = set()


def register_serializer(
    cls: type, *, serializer: Callable[[Any], Any], deserializer: Callable[[Any], Any]
) -> None:
    """Pickles instances of exactly `cls` by `serializer`, and restores them by `deserializer`.

    It applies to what this process pickles: other processes that store such instances must
    register too. Receivers need not.
    """

    def reduce(instance):
        return deserializer, (serializer(instance),)

    # A ChainMap in front of copyreg's table, so that plain pickle is not affected.
    CloudPickler.dispatch_table[cls] = reduce
    _registered.add(cls)


def deregister_serializer(cls: type) -> None:
    """Undoes register_serializer(); does nothing for a class that is not registered."""
    if cls in _registered:
        _registered.discard(cls)
        CloudPickler.dispatch_table.pop(cls, None)
