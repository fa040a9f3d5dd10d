"""Finds nodes inside arguments: in lists, tuples, dicts, sets and any object that pickles."""

from __future__ import annotations

import io
import pickle
from typing import Any, Callable, Iterator

from ray._private.reducers import REDUCERS
from ray._raylet import ObjectRef
from ray.cloudpickle import CloudPickler


class Node:
    """Marks what the scan looks for: the base of DAGNode."""


_ATOMS = (type(None), bool, int, float, complex, str, bytes, bytearray, ObjectRef)


def _is_atom(kind: type) -> bool:
    """Returns whether values of this type hold no nodes. That holds for types with reducers, such
    as handles to actors."""
    return kind in _ATOMS or kind in REDUCERS


def nodes_in(value: Any) -> Iterator[Any]:
    """Yields the nodes in `value`, without those that are only inside other nodes."""
    kind = type(value)
    if isinstance(value, Node):
        yield value
    elif kind in (list, tuple, set, frozenset):
        for item in value:
            yield from nodes_in(item)
    elif kind is dict:
        for key, item in value.items():
            yield from nodes_in(key)
            yield from nodes_in(item)
    elif not _is_atom(kind):
        scanner = _Scanner.of(value)
        yield from scanner.nodes if scanner else ()


def replace_nodes(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Returns `value` with every node replaced, or `value` itself when it contains none."""
    kind = type(value)
    if isinstance(value, Node):
        return replace(value)
    if _is_atom(kind):
        return value
    if kind in (list, tuple, set, frozenset):
        items = [replace_nodes(item, replace) for item in value]
        return kind(items) if any(new is not old for new, old in zip(items, value)) else value
    if kind is dict:
        return {
            replace_nodes(key, replace): replace_nodes(item, replace) for key, item in value.items()
        }
    scanner = _Scanner.of(value)
    return (
        scanner.restore({id(node): replace(node) for node in scanner.nodes})
        if scanner and scanner.nodes
        else value
    )


class _Scanner(CloudPickler):
    """Pickles an object but leaves out nodes, references and handles, which stay as they are."""

    def __init__(self, file):
        # This takes out-of-band data, so that arrays are not copied.
        self.buffers: list = []
        super().__init__(file, protocol=5, buffer_callback=self.buffers.append)
        self.kept: list = []
        self.nodes: list = []

    def persistent_id(self, value):
        if isinstance(value, Node):
            if not any(value is node for node in self.nodes):
                self.nodes.append(value)
        elif not isinstance(value, ObjectRef) and type(value) not in REDUCERS:
            return None
        self.kept.append(value)
        return len(self.kept) - 1

    @classmethod
    def of(cls, value: Any) -> "_Scanner | None":
        """Scans `value`; None if it cannot be pickled: it has no nodes, and its call will fail."""
        file = io.BytesIO()
        scanner = cls(file)
        try:
            scanner.dump(value)
        except Exception:
            return None
        scanner.pickled = file.getvalue()
        return scanner

    def restore(self, values: dict[int, Any]) -> Any:
        """Returns a copy of the object in which nodes are replaced by `values`, a dict by id."""
        kept = [values.get(id(value), value) for value in self.kept]

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, index):
                return kept[index]

        return Unpickler(io.BytesIO(self.pickled), buffers=self.buffers).load()
