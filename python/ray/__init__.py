"""Tasks, actors and objects on a cluster.

The public interface is Ray's; the runtime underneath is C++ (worker/, daemons/).

Importing the package is cheap on purpose: what a program may not use (pickling by value, asyncio,
logging, NumPy) is imported on first use.
"""

import sys as _sys

from ray._raylet import ObjectRef, ObjectRefGenerator, get, wait
from ray._private.absent import install as _install_absent, raise_missing
from ray._private.ray_logger import install as _install_logger
from ray._private.session import (
    RESTORE_WORKER_MODE,
    SCRIPT_MODE,
    SPILL_WORKER_MODE,
    WORKER_MODE,
    global_worker as _global_worker,
    is_initialized,
    shutdown,
)
from ray._private.worker import cancel, get_actor, get_gpu_ids, kill, put, remote

__version__ = "2.60.0"  # The version of Ray whose interface this is.
__commit__ = "independent-implementation"

ObjectID = ObjectRef
_global_worker.ray_version, _global_worker.ray_commit = __version__, __commit__
_install_absent()
_install_logger()

# Maps an attribute to (module, name in that module). A name of None stands for the module itself.
_LAZY = {
    "init": ("ray._private.init", "init"),
    "nodes": ("ray._private.state", "nodes"),
    "cluster_resources": ("ray._private.state", "cluster_resources"),
    "available_resources": ("ray._private.state", "available_resources"),
    "timeline": ("ray._private.state", "timeline"),
    "get_runtime_context": ("ray.runtime_context", "get_runtime_context"),
    "method": ("ray.actor", "method"),
    "DynamicObjectRefGenerator": ("ray._private.generators", "DynamicObjectRefGenerator"),
    "java_function": ("ray.cross_language", "java_function"),
    "java_actor_class": ("ray.cross_language", "java_actor_class"),
    "JobConfig": ("ray.job_config", "JobConfig"),
    "LoggingConfig": ("ray._private.logging_config", "LoggingConfig"),
    "Language": ("ray._private.language", "Language"),
    "logger": ("ray._private.logging_config", "logger"),
    **{
        name: ("ray._private.ids", name)
        for name in (
            "ActorClassID",
            "ActorID",
            "ClusterID",
            "FunctionID",
            "JobID",
            "NodeID",
            "PlacementGroupID",
            "TaskID",
            "UniqueID",
            "WorkerID",
        )
    },
    **{
        name: (f"ray.{name}", None)
        for name in (
            "actor",
            "autoscaler",
            "cloudpickle",
            "cluster_utils",
            "cross_language",
            "dag",
            "data",
            "exceptions",
            "experimental",
            "job_config",
            "remote_function",
            "runtime_context",
            "runtime_env",
            "util",
        )
    },
}
# Modules of ray._private that older programs reach as ray.<name>; using one that way warns.
_PRIVATE = {
    name: f"ray._private.{name}" for name in ("worker", "state", "ray_constants", "serialization")
}

__all__ = [
    "__version__",
    "ActorClassID",
    "ActorID",
    "ClusterID",
    "FunctionID",
    "JobID",
    "Language",
    "NodeID",
    "ObjectID",
    "ObjectRef",
    "PlacementGroupID",
    "SCRIPT_MODE",
    "TaskID",
    "UniqueID",
    "WORKER_MODE",
    "WorkerID",
    "actor",
    "available_resources",
    "cancel",
    "cluster_resources",
    "get",
    "get_actor",
    "get_gpu_ids",
    "get_runtime_context",
    "init",
    "is_initialized",
    "kill",
    "method",
    "nodes",
    "put",
    "remote",
    "shutdown",
    "timeline",
    "util",
    "wait",
]


def _module(name):
    # importlib.import_module() is not used, because the import of importlib takes longer than
    # several of ours.
    __import__(name)
    return _sys.modules[name]


def __getattr__(name):
    lazy = _LAZY.get(name)
    if lazy:
        module = _module(lazy[0])
        value = module if lazy[1] is None else getattr(module, lazy[1])
        globals()[name] = value
        return value
    if name in _PRIVATE:
        old_names = _module("ray._private.old_names")
        value = globals()[name] = old_names.OldName(name, _PRIVATE[name])
        return value
    raise_missing("ray", name)


def __dir__():
    return sorted({*globals(), *_LAZY, *_PRIVATE})
