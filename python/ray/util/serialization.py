"""ray.util.register_serializer: how this process pickles a class."""

from __future__ import annotations

from typing import Any, Callable

_registered: set[type] = set()


def register_serializer(
    cls: type, *, serializer: Callable[[Any], Any], deserializer: Callable[[Any], Any]
) -> None:
    """Instances of exactly `cls` travel as serializer(instance), and arrive as deserializer(of that).

    For what this process pickles: other processes that store such instances must register too. Receivers need not.
    """
    from ray.cloudpickle import CloudPickler

    def reduce(instance):
        return deserializer, (serializer(instance),)

    CloudPickler.dispatch_table[cls] = (
        reduce  # a ChainMap in front of copyreg's: nothing else is changed
    )
    _registered.add(cls)


def deregister_serializer(cls: type) -> None:
    """Undoes register_serializer(); does nothing when there was none."""
    from ray.cloudpickle import CloudPickler

    if cls in _registered:
        _registered.discard(cls)
        CloudPickler.dispatch_table.pop(cls, None)
