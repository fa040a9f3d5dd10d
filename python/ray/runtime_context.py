"""ray.get_runtime_context(): the job, task, actor and node in which code runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ray import _raylet
from ray._private.actor_handle import ActorHandle, HandleInfo
from ray._private.session import (
    WORKER_MODE,
    Worker,
    current_namespace,
    current_task_info,
    ensure_connected,
    global_worker,
)

if TYPE_CHECKING:
    from ray.runtime_env import RuntimeEnv

_ACCELERATORS = ("GPU", "TPU", "HPU", "NPU", "neuron_cores", "RBLN", "FURIOSA", "MBLT", "TTNPU")


def _warn_driver(what: str):
    import logging

    logging.getLogger("ray").warning(
        "This method is only available when the process is a worker: there is no %s on a driver.",
        what,
    )


def _ids():
    # Imported on first use, since few programs use the deprecated properties.
    from ray._private import ids

    return ids


def function_name(task: dict) -> str:
    """The name of a running task's function: module, class if there is one, bare name."""
    name = task["function_name"].rpartition(".")[2]
    # The thread runs no task.
    if not name:
        return ""
    return (
        f"{task['module']}.{task['class_name']}.{name}"
        if task["class_name"]
        else f"{task['module']}.{name}"
    )


def task_name(task: dict) -> str:
    """The name of a running task: its `name` option, else the function's name or Class.method.

    For the constructor of a named actor it is NAME:Class.__init__.
    """
    constructs = task["class_name"] and task["function_name"] == "__init__"
    return (
        f"{task['actor_name']}:{task['task_name']}"
        if constructs and task.get("actor_name")
        else task["task_name"]
    )


class RuntimeContext:
    """The identity of the running job, task and actor.

    All ids are hex strings. Methods raise RuntimeError when this process is not connected. On a
    driver, those that concern a task or an actor return None, with a warning.
    """

    @property
    def worker(self) -> Worker:
        """The state of this process; libraries ask for its `mode` (ray.SCRIPT_MODE, ...)."""
        return global_worker

    def _task(self, what: str) -> dict | None:
        global_worker.check_connected()
        if global_worker.mode != WORKER_MODE:
            _warn_driver(what)
            return None
        return current_task_info()

    def get_job_id(self) -> str:
        """The job of the running task or of this driver."""
        global_worker.check_connected()
        task = current_task_info()
        return (
            task["job_id"] if task and task["job_id"] else global_worker.context["job_id"]
        ).hex()

    def get_node_id(self) -> str:
        """The node of this process."""
        global_worker.check_connected()
        return global_worker.context["node_id"].hex()

    def get_worker_id(self) -> str:
        """The worker id of this process."""
        global_worker.check_connected()
        return global_worker.context["worker_id"].hex()

    def get_task_id(self) -> str | None:
        """The running task."""
        task = self._task("task id")
        return task["task_id"].hex() if task else None

    def get_actor_id(self) -> str | None:
        """The actor in which this code runs; None outside of actors."""
        task = self._task("actor id")
        return task["actor_id"].hex() if task and "actor_id" in task else None

    def get_actor_name(self) -> str | None:
        """The actor's name, '' when it has none; None outside of actors."""
        task = self._task("actor name")
        return task["actor_name"] if task and "actor_id" in task else None

    def get_task_name(self) -> str | None:
        """The `name` option of the running task, else the function's name or Class.method.

        It is '' in threads that run no task.
        """
        task = self._task("task name")
        if task:
            return task_name(task)
        return "" if global_worker.mode == WORKER_MODE else None

    def get_task_function_name(self) -> str | None:
        """The running function as "module.name", or the method as "module.Class.name".

        The names are bare, without those of functions around them. It is '' in threads that run no
        task.
        """
        task = self._task("task function name")
        if not task:
            return None
        return function_name(task)

    def get_placement_group_id(self) -> str | None:
        """The placement group of the running task or actor; None outside of one."""
        global_worker.check_connected()
        group = _raylet.current_group()[0]
        return group.hex() if group else None

    def get_assigned_resources(self) -> dict:
        """The amounts, by resource name, that the running task or actor holds.

        Raises AssertionError on a driver.
        """
        assert global_worker.mode == WORKER_MODE, (
            "get_assigned_resources() is only available in a worker"
        )
        task = current_task_info()
        if not task:
            return {}
        return task["actor_resources"] if "actor_id" in task else task["resources"]

    def get_accelerator_ids(self) -> dict[str, list[str]]:
        """The ids of accelerators that the running task or its actor was given, by family.

        Only GPUs have ids.
        """
        task = current_task_info() if global_worker.mode == WORKER_MODE else None
        ids: dict[str, list[str]] = {name: [] for name in _ACCELERATORS}
        ids["GPU"] = list(task["gpu_ids"]) if task else []
        return ids

    def get_runtime_env_string(self) -> str:
        """The runtime environment of this driver's job, or of this worker, as JSON."""
        global_worker.check_connected()
        import json

        return json.dumps(json.loads(global_worker.runtime_env or "{}"), sort_keys=True)

    @property
    def runtime_env(self) -> RuntimeEnv:
        """The same environment as a ray.runtime_env.RuntimeEnv."""
        from ray.runtime_env import RuntimeEnv

        return RuntimeEnv.deserialize(self.get_runtime_env_string())

    def get_node_labels(self) -> dict[str, str]:
        """The labels of this node."""
        node_id = self.get_node_id()
        return next((node["Labels"] for node in _raylet.nodes() if node["NodeID"] == node_id), {})

    def get_session_name(self) -> str:
        """The name of the session directory."""
        global_worker.check_connected()
        return global_worker.context["session_name"]

    def get_temp_dir(self) -> str:
        """The directory that holds the session directories."""
        global_worker.check_connected()
        return os.path.dirname(global_worker.context["session_dir"])

    def is_canceled(self) -> bool:
        """Whether ray.cancel was called on the running task; RuntimeError on a driver.

        Methods of actors that are no coroutines are not interrupted, so they can poll this.
        """
        if global_worker.mode != WORKER_MODE:
            raise RuntimeError(
                "This method is only available in a worker: there is no task on a driver that "
                "could be cancelled."
            )
        if _raylet.task_cancelled():
            return True

        module = sys.modules.get("ray._private.async_actor")
        call = module.current_call.get() if module else None
        return call is not None and call.cancelled()

    @property
    def namespace(self) -> str:
        """The namespace of the running task's job, or of this driver."""
        return current_namespace()

    @property
    def gcs_address(self) -> str:
        """HOST:PORT of the head."""
        global_worker.check_connected()
        return global_worker.context["head_address"]

    @property
    def current_actor(self):
        """A handle to the actor in which this code runs; RuntimeError outside of actors."""
        task = current_task_info()
        if not task or "actor_id" not in task:
            raise RuntimeError("This method is only available in an actor.")

        return ActorHandle(
            _raylet.ActorCore(task["actor_id"], None), HandleInfo.of(task["handle_blob"])
        )

    @property
    def was_current_actor_reconstructed(self) -> bool:
        """Whether this actor has been restarted. AssertionError outside actors, as in Ray."""
        task = current_task_info()
        if not task or "actor_id" not in task:
            raise AssertionError("This method is only available in an actor.")
        return task["actor_restarts"] > 0

    @property
    def should_capture_child_tasks_in_placement_group(self) -> bool:
        """Whether tasks and actors created here join the placement group of the running one."""
        global_worker.check_connected()
        return _raylet.current_group()[2]

    def get(self) -> dict:
        """Deprecated: the ids of job, node and, in workers, task and actor, as a dict."""
        context = {"job_id": self.job_id, "node_id": self.node_id, "namespace": self.namespace}
        if global_worker.mode == WORKER_MODE:
            task = current_task_info()
            if task:
                context["task_id"] = self.task_id
                if "actor_id" in task:
                    context["actor_id"] = self.actor_id
        return context

    @property
    def job_id(self):
        """Deprecated: get_job_id() as a JobID."""
        return _ids().JobID.from_hex(self.get_job_id())

    @property
    def node_id(self):
        """Deprecated: get_node_id() as a NodeID."""
        return _ids().NodeID.from_hex(self.get_node_id())

    @property
    def task_id(self):
        """Deprecated: get_task_id() as a TaskID, or None."""
        task = self.get_task_id()
        return _ids().TaskID.from_hex(task) if task else None

    @property
    def actor_id(self):
        """Deprecated: get_actor_id() as an ActorID, or None; AssertionError on a driver."""
        if global_worker.mode != WORKER_MODE:
            raise AssertionError(
                "This method is only available when the process is a worker. Current mode: "
                f"{global_worker.mode}"
            )
        actor = self.get_actor_id()
        return _ids().ActorID.from_hex(actor) if actor else None

    @property
    def current_placement_group_id(self):
        """Deprecated: get_placement_group_id() as a PlacementGroupID, nil outside of a group."""
        kind, group = _ids().PlacementGroupID, self.get_placement_group_id()
        return kind.from_hex(group) if group else kind.nil()

    def get_resource_ids(self) -> dict[str, list[str]]:
        """Deprecated: get_accelerator_ids()."""
        return self.get_accelerator_ids()


_context = RuntimeContext()


def get_runtime_context() -> RuntimeContext:
    """Returns the RuntimeContext of this process."""
    ensure_connected()
    return _context
