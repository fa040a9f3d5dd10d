"""Signatures of the package, among them those that ray/__init__.py loads on first use."""

from __future__ import annotations

import logging
from typing import Any, Callable, Iterator, Protocol, Type, TypeVar, overload

from typing_extensions import ParamSpec

from ray import (
    actor as actor,
    cloudpickle as cloudpickle,
    cluster_utils as cluster_utils,
    dag as dag,
    exceptions as exceptions,
    experimental as experimental,
)
from ray import (
    job_config as job_config,
    remote_function as remote_function,
    runtime_context as runtime_context,
    util as util,
)
from ray._private.ids import (
    ActorClassID as ActorClassID,
    ActorID as ActorID,
    ClusterID as ClusterID,
    FunctionID as FunctionID,
    JobID as JobID,
    NodeID as NodeID,
    PlacementGroupID as PlacementGroupID,
    TaskID as TaskID,
    UniqueID as UniqueID,
    WorkerID as WorkerID,
)
from ray._private.init import RayContext, init as init
from ray._private.language import Language as Language
from ray._private.state import (
    available_resources as available_resources,
    cluster_resources as cluster_resources,
    nodes as nodes,
)
from ray._raylet import (
    ObjectRef as ObjectRef,
    ObjectRefGenerator as ObjectRefGenerator,
    get as get,
    wait as wait,
)
from ray.actor import ActorClass, ActorHandle, method as method
from ray.job_config import JobConfig as JobConfig
from ray.remote_function import RemoteFunction, RemoteFunctionOfMany, RemoteGenerator
from ray.runtime_context import get_runtime_context as get_runtime_context

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

__version__: str
__commit__: str
SCRIPT_MODE: int
WORKER_MODE: int
SPILL_WORKER_MODE: int
RESTORE_WORKER_MODE: int
logger: logging.Logger
ObjectID = ObjectRef

class _Remote(Protocol):
    """The type of `@ray.remote(...)` with options."""
    @overload
    def __call__(self, target: Type[_T]) -> ActorClass[_T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        target: Callable[_P, Iterator[_R]],
    ) -> RemoteGenerator[_P, _R]: ...
    @overload
    def __call__(self, target: Callable[_P, _R]) -> RemoteFunction[Callable[_P, _R]]: ...

class _RemoteOfMany(Protocol):
    def __call__(self, target: Callable[_P, Any]) -> RemoteFunctionOfMany: ...

@overload
def remote(target: Type[_T], /) -> ActorClass[_T]: ...  # type: ignore[overload-overlap]
@overload
def remote(  # type: ignore[overload-overlap]
    target: Callable[_P, Iterator[_R]],
    /,
) -> RemoteGenerator[_P, _R]: ...
@overload
def remote(target: Callable[_P, _R], /) -> RemoteFunction[Callable[_P, _R]]: ...
@overload
def remote(*, num_returns: int | str, **options: Any) -> _RemoteOfMany: ...
@overload
def remote(**options: Any) -> _Remote: ...
def put(
    value: _T, *, _owner: ActorHandle[Any] | None = None, _tensor_transport: str | None = None
) -> ObjectRef[_T]: ...
def get_actor(name: str, namespace: str | None = None) -> ActorHandle[Any]: ...
def kill(actor: ActorHandle[Any], *, no_restart: bool = True) -> None: ...
def cancel(
    ref: ObjectRef[Any] | ObjectRefGenerator[Any], *, force: bool = False, recursive: bool = True
) -> None: ...
def get_gpu_ids() -> list[int] | list[str]: ...
def is_initialized() -> bool: ...
def shutdown(*, wait_for_processes: bool = False) -> None: ...
def timeline(filename: str | None = None) -> list[dict[str, Any]] | None: ...
def __getattr__(name: str) -> Any: ...
