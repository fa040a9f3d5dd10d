"""The state of a cluster: actors, tasks, objects, workers, nodes and jobs, and their logs.

There are lists, single entries and summaries. The functions work in a driver, and in a program
that is not connected (address="HOST:PORT" of the head, or "auto").
"""

from __future__ import annotations

from ray.util.state.api import (
    StateApiClient,
    get_actor,
    get_job,
    get_node,
    get_objects,
    get_placement_group,
    get_task,
    get_worker,
    list_actors,
    list_cluster_events,
    list_jobs,
    list_nodes,
    list_objects,
    list_placement_groups,
    list_runtime_envs,
    list_tasks,
    list_workers,
    summarize_actors,
    summarize_objects,
    summarize_tasks,
)
from ray.util.state.logs import get_log, list_logs

__all__ = [
    "StateApiClient",
    "get_actor",
    "get_job",
    "get_log",
    "get_node",
    "get_objects",
    "get_placement_group",
    "get_task",
    "get_worker",
    "list_actors",
    "list_cluster_events",
    "list_jobs",
    "list_logs",
    "list_nodes",
    "list_objects",
    "list_placement_groups",
    "list_runtime_envs",
    "list_tasks",
    "list_workers",
    "summarize_actors",
    "summarize_objects",
    "summarize_tasks",
]
