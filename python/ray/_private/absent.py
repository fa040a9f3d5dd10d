"""Names of Ray's public interface that this release does not have.

Using one raises an error that names it. Programs that probe for features see what they expect:
`hasattr` is False, `from ray import X` and `import ray.x` raise a ModuleNotFoundError, and
`importlib.util.find_spec` finds nothing. ray/data says why names of Ray Data can be imported.
"""

from __future__ import annotations

import sys

# typing.TYPE_CHECKING is not used, because importing typing takes as long as the rest of `import
# ray`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Package -> absent names in it, modules and attributes alike. A name that exists is found before
# this table is consulted.
ABSENT = {
    "ray": (
        "ClientBuilder",
        "air",
        "client",
        "client_builder",
        "cpp_function",
        "internal",
        "llm",
        "rllib",
        "serve",
        "tune",
        "widgets",
        "workflow",
    ),
    "ray.autoscaler": ("commands", "node_provider", "tags"),
    "ray.data": (
        "aggregate",
        "block",
        "collate_fn",
        "context",
        "dataset",
        "datasource",
        "expressions",
        "extensions",
        "grouped_data",
        "iterator",
        "llm",
        "preprocessor",
        "preprocessors",
    ),
    "ray.dag": (
        "CollectiveOutputNode",
        "CompiledDAG",
        "DAGContext",
        "DAGOperationFuture",
        "GPUFuture",
        "plot",
    ),
    "ray.train": ("horovod", "huggingface", "lightgbm", "lightning", "tensorflow", "xgboost"),
    "ray.train.torch": ("xla",),
    "ray.train.v2": ("jax",),
    "ray.experimental": ("RDTManager", "array", "channel", "collective", "compiled_dag_ref"),
    "ray.util": (
        "ActorGroup",
        "actor_group",
        "client_connect",
        "collective",
        "connect",
        "dask",
        "disconnect",
        "iter",
        "lightgbm",
        "spark",
        "tpu",
        "tracing",
        "xgboost",
    ),
}


class AbsentAttribute(AttributeError, NotImplementedError):
    """An attribute that Ray has and this release lacks."""


class AbsentModule(ModuleNotFoundError, NotImplementedError):
    """A module that Ray has and this release lacks."""


def not_in_release(feature: str) -> NotImplementedError:
    """The error for a feature that has no name of its own, such as a value of an argument."""
    return NotImplementedError(f"{feature}: not in this release")


def absent_attribute(full_name: str) -> AbsentAttribute:
    return AbsentAttribute(f"{full_name}: not in this release")


def raise_missing(package: str, name: str) -> NoReturn:
    """Raises the error for an unknown attribute, as every package's __getattr__ does in the end."""
    if name in ABSENT[package]:
        raise absent_attribute(f"{package}.{name}")
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


class _Finder:
    """The last entry of sys.meta_path: consulted for modules that no other finder has found."""

    @staticmethod
    def find_spec(full_name, path=None, target=None):
        package, _, name = full_name.rpartition(".")
        if name not in ABSENT.get(package, ()):
            return None
        # A probe (importlib.util.find_spec) gets None, an import gets the reason. Both frames
        # belong to importlib: _find_spec, and the function that called it.
        caller = sys._getframe(1).f_back
        if caller is None or caller.f_code.co_name != "_find_and_load_unlocked":
            return None
        # `name` is not passed: `from ray import X` swallows an error that carries that name, and
        # the reason with it.
        raise AbsentModule(f"{full_name}: not in this release")


def install() -> None:
    if not any(finder is _Finder for finder in sys.meta_path):
        sys.meta_path.append(_Finder)
