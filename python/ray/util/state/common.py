"""The entries and options of `ray.util.state`, and its names of resources, states and types."""

from __future__ import annotations

import dataclasses
from abc import ABC
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any, Tuple, Union

from ray._private.job_types import JobStatus, JobType
from ray.util.state.exception import RayStateApiException, ValidationError

DEFAULT_RPC_TIMEOUT = 30  # seconds
DEFAULT_LIMIT = 100
RAY_MAX_LIMIT_FROM_API_SERVER = 10_000
RAY_MAX_LIMIT_FROM_DATA_SOURCE = 10_000

SupportedFilterType = Union[str, bool, int, float]
PredicateType = str  # "=" or "!="
Filter = Tuple[str, PredicateType, SupportedFilterType]

ACTOR_STATUS = ["DEPENDENCIES_UNREADY", "PENDING_CREATION", "ALIVE", "RESTARTING", "DEAD"]
PLACEMENT_GROUP_STATUS = ["PENDING", "PREPARED", "CREATED", "REMOVED", "RESCHEDULING"]
TASK_STATUS = [
    "NIL",
    "PENDING_ARGS_AVAIL",
    "PENDING_NODE_ASSIGNMENT",
    "PENDING_OBJ_STORE_MEM_AVAIL",
    "PENDING_ARGS_FETCH",
    "SUBMITTED_TO_WORKER",
    "PENDING_ACTOR_TASK_ARGS_FETCH",
    "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY",
    "RUNNING",
    "RUNNING_IN_RAY_GET",
    "RUNNING_IN_RAY_WAIT",
    "FINISHED",
    "FAILED",
    "GETTING_AND_PINNING_ARGS",
]
NODE_STATUS = ["ALIVE", "DEAD"]
WORKER_TYPE = ["WORKER", "DRIVER", "SPILL_WORKER", "RESTORE_WORKER"]
WORKER_EXIT_TYPE = [
    "SYSTEM_ERROR",
    "INTENDED_SYSTEM_EXIT",
    "USER_ERROR",
    "INTENDED_USER_EXIT",
    "NODE_OUT_OF_MEMORY",
]
TASK_TYPE = ["NORMAL_TASK", "ACTOR_CREATION_TASK", "ACTOR_TASK", "DRIVER_TASK"]
REFERENCE_TYPE = [
    "ACTOR_HANDLE",
    "PINNED_IN_MEMORY",
    "LOCAL_REFERENCE",
    "USED_BY_PENDING_TASK",
    "CAPTURED_IN_OBJECT",
    "UNKNOWN_STATUS",
]
ERROR_TYPE = [
    "WORKER_DIED",
    "ACTOR_DIED",
    "TASK_EXECUTION_EXCEPTION",
    "OBJECT_IN_PLASMA",
    "TASK_CANCELLED",
    "ACTOR_CREATION_FAILED",
    "RUNTIME_ENV_SETUP_FAILED",
    "OBJECT_LOST",
    "OWNER_DIED",
    "OBJECT_DELETED",
    "DEPENDENCY_RESOLUTION_FAILED",
    "OBJECT_UNRECONSTRUCTABLE_MAX_ATTEMPTS_EXCEEDED",
    "OBJECT_UNRECONSTRUCTABLE_LINEAGE_EVICTED",
    "OBJECT_FETCH_TIMED_OUT",
    "LOCAL_RAYLET_DIED",
    "TASK_PLACEMENT_GROUP_REMOVED",
    "ACTOR_PLACEMENT_GROUP_REMOVED",
    "TASK_UNSCHEDULABLE_ERROR",
    "ACTOR_UNSCHEDULABLE_ERROR",
    "OUT_OF_DISK_ERROR",
    "OBJECT_FREED",
    "OUT_OF_MEMORY",
    "NODE_DIED",
    "END_OF_STREAMING_GENERATOR",
    "ACTOR_UNAVAILABLE",
    "GENERATOR_TASK_FAILED_FOR_OBJECT_RECONSTRUCTION",
    "OBJECT_UNRECONSTRUCTABLE_PUT",
    "OBJECT_UNRECONSTRUCTABLE_RETRIES_DISABLED",
    "OBJECT_UNRECONSTRUCTABLE_BORROWED",
    "OBJECT_UNRECONSTRUCTABLE_REF_NOT_FOUND",
    "OBJECT_UNRECONSTRUCTABLE_TASK_CANCELLED",
    "OBJECT_UNRECONSTRUCTABLE_LINEAGE_DISABLED",
    "WORKER_STARTUP_FAILED",
    "STREAMING_GENERATOR_REPLAY_INCONSISTENT",
]
LANGUAGE = ["PYTHON", "JAVA", "CPP"]


@unique
class StateResource(Enum):
    """The resources that can be listed."""

    ACTORS = "actors"
    JOBS = "jobs"
    PLACEMENT_GROUPS = "placement_groups"
    NODES = "nodes"
    WORKERS = "workers"
    TASKS = "tasks"
    OBJECTS = "objects"
    RUNTIME_ENVS = "runtime_envs"
    CLUSTER_EVENTS = "cluster_events"


@unique
class SummaryResource(Enum):
    """The resources that can be summarized."""

    ACTORS = "actors"
    TASKS = "tasks"
    OBJECTS = "objects"


def _check_int(options: Any, name: str) -> None:
    value = getattr(options, name)
    if isinstance(value, str) and value.lstrip("-").isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValidationError(
            f"1 validation error for {type(options).__name__}: {name}: a valid integer is "
            f"needed, got {value!r}"
        )
    setattr(options, name, value)


def _check_filters(options: Any) -> None:
    name = type(options).__name__
    if options.filters is None:
        options.filters = []
    if not isinstance(options.filters, (list, tuple)):
        raise ValidationError(
            f"1 validation error for {name}: filters: a valid list is needed, got "
            f"{options.filters!r}"
        )
    for entry in options.filters:
        if not isinstance(entry, (list, tuple)) or len(entry) != 3 or not isinstance(entry[0], str):
            raise ValidationError(
                f"1 validation error for {name}: filters: each is (key, '=' or '!=', value), got "
                f"{entry!r}"
            )
        if entry[1] not in ("=", "!="):
            raise ValidationError(
                f"1 validation error for {name}: Unsupported filter predicate {entry[1]} is "
                "given. Available predicates: =, !=."
            )


@dataclass
class ListApiOptions:
    """Options of a list.

    limit: rows, 10,000 at most. timeout: seconds. detail: also return the columns of the detail.
    filters: (key, '=' or '!=', value) tuples, which must all hold.
    """

    limit: int = DEFAULT_LIMIT
    timeout: int = DEFAULT_RPC_TIMEOUT
    detail: bool = False
    filters: list[Filter] | None = field(default_factory=list)
    # Drivers are never listed as tasks.
    exclude_driver: bool = True
    server_timeout_multiplier: float = 0.8

    def __post_init__(self) -> None:
        _check_int(self, "limit")
        _check_int(self, "timeout")
        _check_filters(self)


@dataclass
class GetApiOptions:
    """Options of a single entry. timeout: seconds."""

    timeout: int = DEFAULT_RPC_TIMEOUT
    server_timeout_multiplier: float = 0.8

    def __post_init__(self) -> None:
        _check_int(self, "timeout")


@dataclass
class SummaryApiOptions:
    """Options of a summary.

    timeout: seconds. summary_by: only the default of each resource (tasks: func_name, actors:
    class, objects: callsite), and "lineage" for tasks.
    """

    timeout: int = DEFAULT_RPC_TIMEOUT
    filters: list[Filter] | None = field(default_factory=list)
    summary_by: str | None = None

    def __post_init__(self) -> None:
        _check_int(self, "timeout")
        _check_filters(self)


class StateSchema(ABC):
    """An entry, whose columns are attributes and items.

    Columns of the detail are None unless it was requested.
    """

    def __init__(self, **columns: Any) -> None:
        names = self.columns()
        unknown = columns.keys() - names
        if unknown:
            raise TypeError(f"{type(self).__name__} has no column {', '.join(sorted(unknown))}")
        for name in names:
            setattr(self, name, columns.get(name))

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)

    def asdict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)  # type: ignore[call-overload,no-any-return]

    @classmethod
    def columns(cls) -> set[str]:
        return {column.name for column in dataclasses.fields(cls)}  # type: ignore[arg-type]


@dataclass(init=False)
class ActorState(StateSchema):
    """An actor. state: one of ACTOR_STATUS; times in milliseconds since the epoch."""

    actor_id: str
    class_name: str
    state: str
    job_id: str
    name: str | None
    node_id: str | None
    pid: int | None
    ray_namespace: str | None
    serialized_runtime_env: str | None
    required_resources: dict[str, Any] | None
    death_cause: dict[str, Any] | None
    is_detached: bool | None
    placement_group_id: str | None
    repr_name: str | None
    num_restarts: int | None
    num_restarts_due_to_lineage_reconstruction: int | None
    num_restarts_due_to_node_preemption: int | None
    call_site: str | None
    label_selector: dict[str, Any] | None
    fallback_strategy: dict[str, Any] | None


@dataclass(init=False)
class PlacementGroupState(StateSchema):
    """A placement group. state: one of PLACEMENT_GROUP_STATUS.

    strategy and why are columns that Ray lacks: the strategy by which the bundles were or will be
    placed, and a sentence that says why the group waits or why it was removed.
    """

    placement_group_id: str
    name: str
    creator_job_id: str
    state: str
    bundles: list[dict[str, Any]] | None
    is_detached: bool | None
    stats: dict[str, Any] | None
    topology_strategy: dict[str, Any] | None
    topology_assignments: dict[str, Any] | None
    strategy: str | None
    why: str | None


@dataclass(init=False)
class NodeState(StateSchema):
    """A node, alive or dead."""

    node_id: str
    node_ip: str
    is_head_node: bool
    state: str
    state_message: str | None
    node_name: str
    resources_total: dict[str, Any]
    labels: dict[str, Any]
    start_time_ms: int | None
    end_time_ms: int | None


@dataclass(init=False)
class WorkerState(StateSchema):
    """A worker or driver process: alive, or among the last that ended."""

    worker_id: str
    is_alive: bool
    worker_type: str
    exit_type: str | None
    node_id: str
    ip: str
    pid: int
    exit_detail: str | None
    worker_launch_time_ms: int | None
    worker_launched_time_ms: int | None
    start_time_ms: int | None
    end_time_ms: int | None
    debugger_port: int | None
    num_paused_threads: int | None


@dataclass(init=False)
class TaskState(StateSchema):
    """An attempt of a task.

    One that has ended is read from the head's history, which has no runtime_env_info. waits_for
    says what it waits for, and which setting bounds that, if the state alone does not.
    """

    task_id: str
    attempt_number: int
    name: str
    state: str
    job_id: str
    actor_id: str | None
    type: str
    func_or_class_name: str
    parent_task_id: str
    node_id: str | None
    worker_id: str | None
    worker_pid: int | None
    error_type: str | None
    language: str | None
    required_resources: dict[str, Any] | None
    runtime_env_info: dict[str, Any] | None
    placement_group_id: str | None
    events: list[dict[str, Any]] | None
    profiling_data: dict[str, Any] | None
    creation_time_ms: int | None
    start_time_ms: int | None
    end_time_ms: int | None
    task_log_info: dict[str, Any] | None
    error_message: str | None
    is_debugger_paused: bool | None
    call_site: str | None
    label_selector: dict[str, Any] | None
    fallback_strategy: dict[str, Any] | None
    waits_for: str | None


@dataclass(init=False)
class ObjectState(StateSchema):
    """A reference that one process holds to an object.

    object_size is in bytes, -1 when unknown; attempt_number counts from 1.
    """

    object_id: str
    object_size: int
    task_status: str
    attempt_number: int
    reference_type: str
    call_site: str
    type: str
    pid: int
    ip: str


@dataclass(init=False)
class RuntimeEnvState(StateSchema):
    """A runtime environment made on a node."""

    runtime_env: dict[str, Any]
    success: bool
    creation_time_ms: float | None
    node_id: str
    ref_cnt: int | None
    error: str | None


@dataclass(init=False)
class ClusterEventState(StateSchema):
    """An event of the cluster."""

    severity: str
    time: str
    source_type: str
    message: str
    event_id: str
    custom_fields: dict[str, Any] | None


@dataclass(init=False)
class JobState(StateSchema):
    """A driver's job or a submitted one; times in milliseconds since the epoch."""

    type: Any
    job_id: Any
    submission_id: Any
    driver_info: Any
    status: Any
    entrypoint: Any
    message: Any
    error_type: Any
    start_time: Any
    end_time: Any
    metadata: Any
    runtime_env: Any
    driver_agent_http_address: Any
    driver_node_id: Any
    driver_exit_code: Any


_SCHEMAS: dict[StateResource, type[StateSchema]] = {
    StateResource.ACTORS: ActorState,
    StateResource.JOBS: JobState,
    StateResource.PLACEMENT_GROUPS: PlacementGroupState,
    StateResource.NODES: NodeState,
    StateResource.WORKERS: WorkerState,
    StateResource.TASKS: TaskState,
    StateResource.OBJECTS: ObjectState,
    StateResource.RUNTIME_ENVS: RuntimeEnvState,
    StateResource.CLUSTER_EVENTS: ClusterEventState,
}


def resource_to_schema(resource: StateResource) -> type[StateSchema]:
    """The class of a resource's entries."""
    return _SCHEMAS[resource]


def dict_to_state(row: dict[str, Any], resource: StateResource) -> StateSchema:
    """Makes the entry of a row."""
    try:
        if resource is StateResource.JOBS:
            row = {**row, "type": JobType(row["type"]), "status": JobStatus(row["status"])}
        return _SCHEMAS[resource](**row)
    except (TypeError, ValueError, KeyError) as error:
        raise RayStateApiException(
            f"an answer about {resource.value} cannot be read: {error}"
        ) from error
