"""The state of the cluster, from the head: ray.nodes(), ray.timeline() and others."""

from __future__ import annotations

import time

from ray import _raylet
from ray._private.session import global_worker
from ray.exceptions import RaySystemError
from ray.util.placement_group import PlacementGroup, placement_group_table

# Each process sends its events every 250 ms, and two more hops follow.
_EVENTS_TRAVEL_S = 0.6


def _require():
    if not global_worker.connected:
        raise RaySystemError("Ray has not been started yet. You can start Ray with 'ray.init()'.")


def nodes() -> list[dict]:
    """Returns one dict per node, dead ones included."""
    _require()
    return [
        {key: value for key, value in node.items() if not key.startswith("_")}
        for node in _raylet.nodes()
    ]


def cluster_resources() -> dict[str, float]:
    """Returns the amounts of every resource, summed over alive nodes."""
    _require()
    return _raylet.resources(False)


def available_resources() -> dict[str, float]:
    """Returns the amounts that no task or actor holds; a fully used resource is absent."""
    _require()
    return _raylet.resources(True)


def available_resources_per_node() -> dict[str, dict]:
    _require()
    return {node["NodeID"]: node["_available"] for node in _raylet.nodes() if node["Alive"]}


def total_resources_per_node() -> dict[str, dict]:
    _require()
    return {node["NodeID"]: node["Resources"] for node in _raylet.nodes() if node["Alive"]}


def node_ids() -> list[str]:
    return [node["NodeID"] for node in nodes() if node["Alive"]]


def timeline(filename=None):
    """The Chrome trace of all tasks: a list of events, or None when written to `filename` as JSON.

    Submissions are spans `submit_task`. They last a microsecond, or their real time in a process
    with RAY_PROFILING in its environment.

    Waits for 0.6 s first, the time that recorded events need to reach the head.
    """
    if not global_worker.connected:
        raise RuntimeError(
            "Ray has not been started yet: ray.timeline() needs a running cluster (ray.init())."
        )
    time.sleep(_EVENTS_TRAVEL_S)
    text, dropped = _raylet.timeline()
    if dropped:
        import logging

        logging.getLogger("ray").warning(
            "%d events are not in the timeline: they were dropped (see the settings "
            "task_events_buffer and task_events_max_bytes).",
            dropped,
        )
    if filename is not None:
        with open(filename, "w") as out:
            out.write(text)
        return None
    import json

    return json.loads(text)


# Their order is that of the numbers of ActorState in the .proto file.
_ACTOR_STATES = ("PENDING_CREATION", "ALIVE", "RESTARTING", "DEAD", "DEPENDENCIES_UNREADY")


def _actor_entry(actor: dict) -> dict:
    return {
        "ActorID": actor["actor_id"].hex(),
        "ActorClassName": actor["class_name"],
        "IsDetached": actor["detached"],
        "Name": actor["name"],
        "JobID": actor["job_id"].hex(),
        "Address": actor["address"],
        "OwnerAddress": actor["owner_address"],
        "State": _ACTOR_STATES[actor["state"]],
        "NumRestarts": actor["num_restarts"],
        "Timestamp": float(actor["end_time"] or actor["start_time"]),
        "StartTime": actor["start_time"],
        "EndTime": actor["end_time"],
        "DeathCause": actor["death_cause"] or None,
        "Pid": actor["pid"],
    }


def actors(actor_id: str | None = None) -> dict:
    """Returns every actor by its id in hex, or the entry of one actor ({} when there is none).

    Times are in milliseconds since the epoch.
    """
    _require()
    found = {actor["actor_id"].hex(): _actor_entry(actor) for actor in _raylet.list_actors(True)}
    return found if actor_id is None else found.get(actor_id, {})


def jobs() -> list[dict]:
    """Returns every driver's job. Times are in milliseconds since the epoch."""
    _require()
    from ray.util.state import list_jobs

    found = []
    for job in list_jobs(detail=True, limit=10_000):
        if job.driver_info is None:
            continue
        found.append(
            {
                "JobID": job.driver_info["id"],
                "DriverIPAddress": job.driver_info["node_ip_address"],
                "DriverPid": int(job.driver_info["pid"]),
                "Timestamp": job.end_time or job.start_time,
                "StartTime": job.start_time,
                "EndTime": job.end_time,
                "IsDead": job.status.is_terminal(),
                "Entrypoint": job.entrypoint,
            }
        )
    return found


def workers() -> dict[str, dict]:
    """Returns every living worker by its id in hex."""
    _require()
    from ray.util.state import list_workers

    sockets = {node["NodeID"]: node["ObjectStoreSocketName"] for node in _raylet.nodes()}
    found = list_workers(
        filters=[("is_alive", "=", True), ("worker_type", "=", "WORKER")], limit=10_000
    )
    return {
        worker.worker_id: {
            "node_ip_address": worker.ip,
            "plasma_store_socket": sockets.get(worker.node_id),
        }
        for worker in found
    }


class GlobalState:
    """The functions of this module as methods, as packages call them on its object `state`."""

    node_table = staticmethod(nodes)
    job_table = staticmethod(jobs)
    workers = staticmethod(workers)
    cluster_resources = staticmethod(cluster_resources)
    available_resources = staticmethod(available_resources)
    available_resources_per_node = staticmethod(available_resources_per_node)
    total_resources_per_node = staticmethod(total_resources_per_node)

    @staticmethod
    def placement_group_table(placement_group_id=None) -> dict:
        """Describes a placement group by its PlacementGroupID, or all of them by id in hex."""
        _require()
        return placement_group_table(placement_group_id and PlacementGroup(placement_group_id))


state = GlobalState()
