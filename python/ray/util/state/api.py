"""Queries of the state API.

C++ (observability/state) selects rows and columns; here the rows become entries.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ray import _raylet
from ray._private.absent import not_in_release
from ray._private.session import global_worker
from ray.util.state import over_http
from ray.util.state.common import (
    DEFAULT_LIMIT,
    DEFAULT_RPC_TIMEOUT,
    RAY_MAX_LIMIT_FROM_API_SERVER,
    ActorState,
    ClusterEventState,
    Filter,
    GetApiOptions,
    JobState,
    ListApiOptions,
    NodeState,
    ObjectState,
    PlacementGroupState,
    RuntimeEnvState,
    StateResource,
    StateSchema,
    SummaryApiOptions,
    SummaryResource,
    TaskState,
    WorkerState,
    dict_to_state,
)
from ray.util.state.exception import RayStateApiException, ServerUnavailable

if TYPE_CHECKING:
    from ray import ObjectRef

_ID_COLUMN = {
    StateResource.ACTORS: "actor_id",
    StateResource.PLACEMENT_GROUPS: "placement_group_id",
    StateResource.NODES: "node_id",
    StateResource.WORKERS: "worker_id",
    StateResource.TASKS: "task_id",
    StateResource.OBJECTS: "object_id",
    StateResource.JOBS: "submission_id",
}


def resolve_address(address: str | None) -> str:
    """HOST:PORT of the head to query; http://HOST:PORT is returned as it is.

    Without an `address` it is the head of this process's cluster, else the one in RAY_ADDRESS,
    else that of the machine's newest cluster.
    """
    if address in (None, "", "auto") and global_worker.connected:
        return str(global_worker.context["head_address"])
    named = os.environ.get("RAY_ADDRESS", "") if address in (None, "") else address
    if named and over_http.is_http(named):
        return named
    try:
        return _raylet.resolve_address(address or "auto")
    except Exception as error:
        raise ServerUnavailable(str(error)) from error


@dataclass(frozen=True)
class _Query:
    """A question to a cluster: for the entries of a resource, or for a summary of them."""

    resource: str
    filters: list[Filter] | None
    limit: int
    detail: bool
    timeout: int  # seconds
    summarise: bool = False
    by_lineage: bool = False


def _answer_over_http(address: str, query: _Query) -> dict[str, Any]:
    words: list[tuple[str, Any]] = [
        ("limit", query.limit),
        ("detail", int(query.detail)),
        ("timeout", query.timeout),
    ]
    for key, predicate, value in query.filters or []:
        words += [("filter_keys", key), ("filter_predicates", predicate), ("filter_values", value)]
    if query.by_lineage:
        words.append(("summary_by", "lineage"))
    path = f"/api/v0/{query.resource}" + ("/summarize" if query.summarise else "")
    answer = over_http.get_result(address, path, words, query.timeout)
    if not query.summarise:
        return cast("dict[str, Any]", answer)
    return {
        **answer["result"]["node_id_to_summary"]["cluster"],
        "partial_failure_warning": answer["partial_failure_warning"],
        "warnings": answer["warnings"],
    }


def _answer(address: str, query: _Query) -> dict[str, Any]:
    if over_http.is_http(address):
        return _answer_over_http(address, query)
    terms = [(key, predicate == "=", str(value)) for key, predicate, value in query.filters or []]
    try:
        answer = _raylet.state_query(
            address,
            query.resource,
            query.summarise,
            terms,
            query.limit,
            query.detail,
            query.by_lineage,
            float(query.timeout),
        )
    except NotImplementedError:
        raise
    except ValueError as error:
        raise RayStateApiException(str(error)) from error
    except Exception as error:
        raise ServerUnavailable(f"The head at {address} did not answer: {error}") from error
    return cast("dict[str, Any]", json.loads(answer))


def _report_missing(answer: dict[str, Any], raise_on_missing_output: bool) -> None:
    warning = answer.get("partial_failure_warning")
    if not warning:
        return
    if raise_on_missing_output:
        raise RayStateApiException(
            f"{warning}. With raise_on_missing_output=False the rest is returned, with a warning."
        )
    warnings.warn(warning, RuntimeWarning, stacklevel=4)


class StateApiClient:
    """Queries one cluster.

    It is the cluster of this process, or the one at `address` (HOST:PORT of its head, or "auto").
    """

    def __init__(
        self,
        address: str | None = None,
        cookies: dict[str, Any] | None = None,
        headers: dict[str, Any] | None = None,
    ) -> None:
        self._address = resolve_address(address)

    def list(
        self,
        resource: StateResource,
        options: ListApiOptions,
        raise_on_missing_output: bool = True,
        _explain: bool = False,
    ) -> list[StateSchema]:
        """Returns entries sorted by id.

        Raises RayStateApiException for an impossible filter or limit, and, with
        raise_on_missing_output, when a source did not answer.
        """
        query = _Query(
            resource=resource.value,
            filters=options.filters,
            limit=options.limit,
            detail=options.detail,
            timeout=options.timeout,
        )
        answer = _answer(self._address, query)
        _report_missing(answer, raise_on_missing_output)
        return [dict_to_state(row, resource) for row in answer["result"]]

    def get(
        self,
        resource: StateResource,
        id: str,
        options: GetApiOptions | None = None,
        _explain: bool = False,
    ) -> StateSchema | list[StateSchema] | None:
        """Returns the entry with all columns, None when there is none.

        It returns a list for objects, and for a task of several attempts.
        """
        options = options or GetApiOptions()
        if resource not in _ID_COLUMN:
            raise RayStateApiException(f"get() is not supported for {resource.value}")
        found = self.list(
            resource,
            ListApiOptions(
                limit=RAY_MAX_LIMIT_FROM_API_SERVER,
                timeout=options.timeout,
                detail=True,
                filters=[(_ID_COLUMN[resource], "=", id)],
            ),
            True,
        )
        if resource is StateResource.OBJECTS or len(found) > 1:
            return found
        return found[0] if found else None

    def summary(
        self,
        resource: SummaryResource,
        *,
        options: SummaryApiOptions,
        raise_on_missing_output: bool = True,
        _explain: bool = False,
    ) -> dict[str, Any]:
        """Returns {"cluster": counts by function, class or call site}.

        For tasks with summary_by="lineage" the value is a tree of which task submitted which.
        """
        default = {
            SummaryResource.TASKS: "func_name",
            SummaryResource.ACTORS: "class",
            SummaryResource.OBJECTS: "callsite",
        }[resource]
        by_lineage = resource is SummaryResource.TASKS and options.summary_by == "lineage"
        if options.summary_by not in (None, default) and not by_lineage:
            raise not_in_release(f"a summary of {resource.value} by {options.summary_by}")
        query = _Query(
            resource=resource.value,
            filters=options.filters,
            limit=DEFAULT_LIMIT,
            detail=True,
            timeout=options.timeout,
            summarise=True,
            by_lineage=by_lineage,
        )
        answer = _answer(self._address, query)
        _report_missing(answer, raise_on_missing_output)
        answer.pop("partial_failure_warning", None)
        for note in answer.pop("warnings", None) or ():
            warnings.warn(note, RuntimeWarning, stacklevel=3)
        return {"cluster": answer}


def _list(
    resource: StateResource,
    address: str | None,
    filters: list[Filter] | None,
    limit: int,
    timeout: int,
    detail: bool,
    raise_on_missing_output: bool,
) -> list[Any]:
    options = ListApiOptions(limit=limit, timeout=timeout, detail=detail, filters=filters)
    return StateApiClient(address).list(resource, options, raise_on_missing_output)


def list_actors(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[ActorState]:
    """Lists actors, dead ones included."""
    return _list(
        StateResource.ACTORS, address, filters, limit, timeout, detail, raise_on_missing_output
    )


def list_placement_groups(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[PlacementGroupState]:
    """Lists placement groups, the last of those that were removed included."""
    return _list(
        StateResource.PLACEMENT_GROUPS,
        address,
        filters,
        limit,
        timeout,
        detail,
        raise_on_missing_output,
    )


def list_nodes(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[NodeState]:
    """Lists nodes, dead ones included."""
    return _list(
        StateResource.NODES, address, filters, limit, timeout, detail, raise_on_missing_output
    )


def list_jobs(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[JobState]:
    """Lists jobs of drivers and submitted ones."""
    return _list(
        StateResource.JOBS, address, filters, limit, timeout, detail, raise_on_missing_output
    )


def list_workers(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[WorkerState]:
    """Lists worker and driver processes of living nodes, and the last of them that ended."""
    return _list(
        StateResource.WORKERS, address, filters, limit, timeout, detail, raise_on_missing_output
    )


def list_tasks(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[TaskState]:
    """Lists the newest `limit` attempts of tasks that match.

    They are those that have not ended, and those in the head's history.
    """
    return _list(
        StateResource.TASKS, address, filters, limit, timeout, detail, raise_on_missing_output
    )


def list_objects(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[ObjectState]:
    """Lists the references that each living process holds, one entry per process and object."""
    return _list(
        StateResource.OBJECTS, address, filters, limit, timeout, detail, raise_on_missing_output
    )


def list_runtime_envs(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[RuntimeEnvState]:
    """Lists the runtime environments for which workers of living nodes were started.

    An entry says whether making it succeeded, how long that took (creation_time_ms), and how many
    workers use it (ref_cnt).
    """
    return _list(
        StateResource.RUNTIME_ENVS,
        address,
        filters,
        limit,
        timeout,
        detail,
        raise_on_missing_output,
    )


def list_cluster_events(
    address: str | None = None,
    filters: list[Filter] | None = None,
    limit: int = DEFAULT_LIMIT,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    detail: bool = False,
    raise_on_missing_output: bool = True,
) -> list[ClusterEventState]:
    """Lists nodes and jobs that came and went and actors that died, while the head keeps them."""
    return _list(
        StateResource.CLUSTER_EVENTS,
        address,
        filters,
        limit,
        timeout,
        detail,
        raise_on_missing_output,
    )


def get_actor(
    id: str, address: str | None = None, timeout: int = DEFAULT_RPC_TIMEOUT, _explain: bool = False
) -> ActorState | None:
    """Returns the actor with this id (hex), or None."""
    return cast(
        "ActorState | None",
        StateApiClient(address).get(StateResource.ACTORS, id, GetApiOptions(timeout=timeout)),
    )


def get_placement_group(
    id: str, address: str | None = None, timeout: int = DEFAULT_RPC_TIMEOUT, _explain: bool = False
) -> PlacementGroupState | None:
    """Returns the placement group with this id (hex), or None."""
    return cast(
        "PlacementGroupState | None",
        StateApiClient(address).get(
            StateResource.PLACEMENT_GROUPS, id, GetApiOptions(timeout=timeout)
        ),
    )


def get_node(
    id: str, address: str | None = None, timeout: int = DEFAULT_RPC_TIMEOUT, _explain: bool = False
) -> NodeState | None:
    """Returns the node with this id (hex), or None."""
    return cast(
        "NodeState | None",
        StateApiClient(address).get(StateResource.NODES, id, GetApiOptions(timeout=timeout)),
    )


def get_worker(
    id: str, address: str | None = None, timeout: int = DEFAULT_RPC_TIMEOUT, _explain: bool = False
) -> WorkerState | None:
    """Returns the worker or driver with this id (hex), or None."""
    return cast(
        "WorkerState | None",
        StateApiClient(address).get(StateResource.WORKERS, id, GetApiOptions(timeout=timeout)),
    )


def get_job(
    id: str, address: str | None = None, timeout: int = DEFAULT_RPC_TIMEOUT, _explain: bool = False
) -> JobState | None:
    """Returns the job with this submission id, or None."""
    return cast(
        "JobState | None",
        StateApiClient(address).get(StateResource.JOBS, id, GetApiOptions(timeout=timeout)),
    )


def get_objects(
    id: str, address: str | None = None, timeout: int = DEFAULT_RPC_TIMEOUT, _explain: bool = False
) -> list[ObjectState]:
    """Returns one entry for each process that refers to the object with this id (hex)."""
    return cast(
        "list[ObjectState]",
        StateApiClient(address).get(StateResource.OBJECTS, id, GetApiOptions(timeout=timeout)),
    )


def get_task(
    id: str | ObjectRef,
    address: str | None = None,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    _explain: bool = False,
) -> TaskState | list[TaskState] | None:
    """Returns the task with this id (hex), or the one that makes this object.

    It returns a list when the task had several attempts, None when it is not known.
    """
    text = id if isinstance(id, str) else id.task_id().hex()
    return cast(
        "TaskState | list[TaskState] | None",
        StateApiClient(address).get(StateResource.TASKS, text, GetApiOptions(timeout=timeout)),
    )


def summarize_tasks(
    address: str | None = None,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Counts the attempts of tasks, by name and state."""
    return StateApiClient(address).summary(
        SummaryResource.TASKS,
        options=SummaryApiOptions(timeout=timeout),
        raise_on_missing_output=raise_on_missing_output,
    )


def summarize_actors(
    address: str | None = None,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Counts actors, by class and state."""
    return StateApiClient(address).summary(
        SummaryResource.ACTORS,
        options=SummaryApiOptions(timeout=timeout),
        raise_on_missing_output=raise_on_missing_output,
    )


def summarize_objects(
    address: str | None = None,
    timeout: int = DEFAULT_RPC_TIMEOUT,
    raise_on_missing_output: bool = True,
    _explain: bool = False,
) -> dict[str, Any]:
    """Summarizes objects by call site: counts, sizes (MiB), kinds of references."""
    return StateApiClient(address).summary(
        SummaryResource.OBJECTS,
        options=SummaryApiOptions(timeout=timeout),
        raise_on_missing_output=raise_on_missing_output,
    )
