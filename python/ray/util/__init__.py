"""Helpers on top of tasks and actors. What is not there yet says so by name."""
from ray.util.actor_pool import ActorPool
from ray.util.check_serialize import inspect_serializability

__all__ = ["ActorPool", "get_node_ip_address", "inspect_serializability", "list_named_actors"]

_ABSENT = ("placement_group", "placement_group_table", "remove_placement_group", "get_placement_group", "get_current_placement_group",
           "scheduling_strategies", "metrics", "queue", "multiprocessing", "joblib", "register_serializer", "deregister_serializer", "as_completed",
           "map_unordered", "log_once", "disable_log_once_globally", "enable_periodic_logging", "get_node_instance_id", "pdb", "rpdb", "ray_debugpy",
           "connect", "disconnect", "iter", "ActorGroup", "collective", "accelerators", "tracing", "state", "client", "dask", "spark")


def get_node_ip_address(address=None) -> str:
    """The address of the node this process runs on."""
    from ray._private.worker import global_worker
    global_worker.check_connected()
    return global_worker.context["node_ip"]


def list_named_actors(all_namespaces: bool = False):
    """Names of living named actors of this namespace; of all: dicts with `namespace` and `name`."""
    from ray import _raylet
    from ray._private.worker import current_namespace, ensure_connected
    ensure_connected()
    dead = 3
    actors = [a for a in _raylet.list_actors(all_namespaces) if a["name"] and a["state"] != dead]
    if all_namespaces:
        return [{"namespace": a["namespace"], "name": a["name"]} for a in actors]
    return [a["name"] for a in actors if a["namespace"] == current_namespace()]


def __getattr__(name):
    if name in _ABSENT:
        raise NotImplementedError(f"ray.util.{name}: not in this release")
    raise AttributeError(f"module 'ray.util' has no attribute '{name}'")
