"""Finds nodes inside arguments: in lists, tuples, dicts, sets and any object that pickles."""

from __future__ import annotations

import io
from typing import Any, Callable, Iterator

from ray._raylet import ObjectRef
from ray.actor import ActorHandle
from ray.cloudpickle import CloudPickler

_ATOMS = (type(None), bool, int, float, complex, str, bytes, bytearray, ObjectRef, ActorHandle)


def nodes_in(value: Any) -> Iterator[Any]:
    """The nodes in `value`, without those that are only inside other nodes."""
    from ray.dag.node import DAGNode

    kind = type(value)
    if isinstance(value, DAGNode):
        yield value
    elif kind in (list, tuple, set, frozenset):
        for item in value:
            yield from nodes_in(item)
    elif kind is dict:
        for key, item in value.items():
            yield from nodes_in(key)
            yield from nodes_in(item)
    elif kind not in _ATOMS:
        scanner = _Scanner.of(value)
        yield from scanner.nodes if scanner else ()


def replace_nodes(value: Any, replace: Callable[[Any], Any]) -> Any:
    """`value` with every node replaced; `value` itself when it contains none."""
    from ray.dag.node import DAGNode

    kind = type(value)
    if isinstance(value, DAGNode):
        return replace(value)
    if kind in _ATOMS:
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
        self.buffers: list = []  # Out-of-band data: arrays are not copied.
        super().__init__(file, protocol=5, buffer_callback=self.buffers.append)
        self.kept: list = []
        self.nodes: list = []

    def persistent_id(self, value):
        from ray.dag.node import DAGNode

        if isinstance(value, DAGNode):
            if not any(value is node for node in self.nodes):
                self.nodes.append(value)
        elif not isinstance(value, (ObjectRef, ActorHandle)):
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
        """A copy of the object in which nodes are replaced by `values`, a dict by id."""
        import pickle

        kept = [values.get(id(value), value) for value in self.kept]

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, index):
                return kept[index]

        return Unpickler(io.BytesIO(self.pickled), buffers=self.buffers).load()
