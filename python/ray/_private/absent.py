"""Names of Ray's public interface that this release does not have. Asking for one is an error that names it, and one that programs which probe
for features expect: `hasattr` is False, `from ray import X` and `import ray.x` raise a ModuleNotFoundError, `importlib.util.find_spec` finds nothing."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # not typing's: importing that takes as long as the rest of `import ray`
if TYPE_CHECKING:
    from typing import NoReturn

# Package -> names in it, modules and attributes alike. A name that gets built is found before it is looked up here.
ABSENT = {
    "ray": (
        "ClientBuilder",
        "air",
        "autoscaler",
        "client",
        "client_builder",
        "cpp_function",
        "dashboard",
        "data",
        "internal",
        "llm",
        "rllib",
        "serve",
        "train",
        "tune",
        "widgets",
        "workflow",
    ),
    "ray.dag": (
        "CollectiveOutputNode",
        "CompiledDAG",
        "DAGContext",
        "DAGOperationFuture",
        "GPUFuture",
        "plot",
    ),
    "ray.experimental": ("RDTManager", "array", "channel", "collective", "compiled_dag_ref"),
    "ray.util": (
        "ActorGroup",
        "actor_group",
        "client",
        "client_connect",
        "collective",
        "connect",
        "dask",
        "disconnect",
        "get_current_placement_group",
        "get_placement_group",
        "iter",
        "lightgbm",
        "placement_group",
        "placement_group_table",
        "remove_placement_group",
        "spark",
        "tpu",
        "tracing",
        "xgboost",
    ),
}


class AbsentAttribute(AttributeError, NotImplementedError):
    """An attribute that Ray has and this release has not."""


class AbsentModule(ModuleNotFoundError, NotImplementedError):
    """A module that Ray has and this release has not."""


def _text(package: str, name: str) -> str:
    return f"{package}.{name}: not in this release"


def raise_missing(package: str, name: str) -> NoReturn:
    """What a package's __getattr__ ends with."""
    if name in ABSENT[package]:
        raise AbsentAttribute(_text(package, name))
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


class _Finder:
    """Last on sys.meta_path: asked for modules that nobody else has found."""

    @staticmethod
    def find_spec(full_name, path=None, target=None):
        package, _, name = full_name.rpartition(".")
        if name not in ABSENT.get(package, ()):
            return None
        # Probes (importlib.util.find_spec) get None, imports the reason. The frames are importlib's: _find_spec and what called it.
        caller = sys._getframe(1).f_back
        if caller is None or caller.f_code.co_name != "_find_and_load_unlocked":
            return None
        # Without `name`: `from ray import X` would drop an error of that name, and with it the reason.
        raise AbsentModule(_text(package, name))


def install() -> None:
    if not any(finder is _Finder for finder in sys.meta_path):
        sys.meta_path.append(_Finder)
