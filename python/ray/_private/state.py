"""Questions to the head: ray.nodes(), ray.cluster_resources(), ray.available_resources(), ray.timeline()."""
from __future__ import annotations

from ray import _raylet


def _require():
    from ray._private.worker import global_worker
    if not global_worker.connected:
        from ray.exceptions import RaySystemError
        raise RaySystemError("Ray has not been started yet. You can start Ray with 'ray.init()'.")


def nodes() -> list[dict]:
    """One dict per node, dead ones included."""
    _require()
    return [{key: value for key, value in node.items() if not key.startswith("_")} for node in _raylet.nodes()]


def cluster_resources() -> dict[str, float]:
    """Amounts of every resource, summed over alive nodes."""
    _require()
    return _raylet.resources(False)


def available_resources() -> dict[str, float]:
    """What no task or actor holds; a fully used resource is absent."""
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
    """The Chrome trace of all tasks: a list of events, or written to `filename` as JSON (then None)."""
    from ray._private.worker import global_worker
    if not global_worker.connected:
        raise RuntimeError("Ray has not been started yet: ray.timeline() needs a running cluster (ray.init()).")
    text = _raylet.timeline()
    if filename is not None:
        with open(filename, "w") as out:
            out.write(text)
        return None
    import json
    return json.loads(text)
