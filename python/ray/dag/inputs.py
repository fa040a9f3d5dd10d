"""The arguments of execute(), as seen inside a graph."""

from __future__ import annotations

from typing import Any

from ray.dag.node import DAGNode


class DAGInputData:
    """The arguments of execute(), unless it is one positional argument.

    They are accessed as `data[0]`, `data["key"]`, `data.key`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        self._args, self._kwargs = list(args), kwargs

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, int):
            return self._args[key]
        if isinstance(key, str):
            return self._kwargs[key]
        raise ValueError(
            "Please only use int index or str as first-level key to access fields of dag input."
        )

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_kwargs"][name]
        except KeyError:
            raise AttributeError(name) from None


def _input_of(args: tuple, kwargs: dict) -> Any:
    return args[0] if len(args) == 1 and not kwargs else DAGInputData(*args, **kwargs)


class InputNode(DAGNode):
    """Stands for the argument of execute(): `with InputNode() as inp: ...`.

    inp[0], inp["key"] and inp.key stand for parts of it.
    """

    _is_input = True

    def __init__(self, *args: Any, input_type: Any = None, **kwargs: Any):
        if args or kwargs:
            raise ValueError("InputNode should not take any args or kwargs.")
        super().__init__((), {})
        self._input_type = input_type

    def __enter__(self) -> "InputNode":
        return self

    def __exit__(self, *exc) -> None:
        return None

    def __getitem__(self, key: int | str) -> "InputAttributeNode":
        if not isinstance(key, (int, str)):
            raise ValueError(
                "Please only use int index or str as first-level key to access fields of dag input."
            )
        return InputAttributeNode(self, key, "__getitem__")

    def __getattr__(self, name: str) -> "InputAttributeNode":
        if name.startswith("_"):
            raise AttributeError(f"'InputNode' object has no attribute '{name}'")
        return InputAttributeNode(self, name, "__getattr__")

    def _run(self, resolve, given):
        return _input_of(*given)

    def _body(self) -> str:
        return "__InputNode__"


class InputAttributeNode(DAGNode):
    """A part of the argument of execute()."""

    def __init__(self, dag_input_node: InputNode, key: int | str, accessor_method: str):
        super().__init__((dag_input_node,), {})
        self._key, self._accessor = key, accessor_method

    @property
    def key(self) -> int | str:
        return self._key

    def _run(self, resolve, given):
        data = _input_of(*given)
        return data[self._key] if self._accessor == "__getitem__" else getattr(data, str(self._key))

    def _body(self) -> str:
        return f'["{self._key}"]'
