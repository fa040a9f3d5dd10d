"""The records of jobs in `ray.job_submission` and `ray.util.state`."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any


class JobStatus(str, Enum):
    """The state of a job. A driver's job is RUNNING or SUCCEEDED."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    def __str__(self) -> str:
        return self.value

    def is_terminal(self) -> bool:
        return self in (JobStatus.STOPPED, JobStatus.SUCCEEDED, JobStatus.FAILED)


class JobType(str, Enum):
    """SUBMISSION: started by `ray job submit`; DRIVER: a program that connected."""

    SUBMISSION = "SUBMISSION"
    DRIVER = "DRIVER"


class JobErrorType(str, Enum):
    """Why a submitted job failed."""

    RUNTIME_ENV_SETUP_FAILURE = "RUNTIME_ENV_SETUP_FAILURE"
    JOB_SUPERVISOR_ACTOR_START_TIMEOUT = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
    JOB_SUPERVISOR_ACTOR_START_FAILURE = "JOB_SUPERVISOR_ACTOR_START_FAILURE"
    JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE = "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"
    JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE = "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE"
    JOB_SUPERVISOR_ACTOR_DIED = "JOB_SUPERVISOR_ACTOR_DIED"
    JOB_ENTRYPOINT_COMMAND_START_ERROR = "JOB_ENTRYPOINT_COMMAND_START_ERROR"
    JOB_ENTRYPOINT_COMMAND_ERROR = "JOB_ENTRYPOINT_COMMAND_ERROR"


_MESSAGES = {
    JobStatus.PENDING: "Job has not started yet.",
    JobStatus.RUNNING: "Job is currently running.",
    JobStatus.STOPPED: "Job was intentionally stopped.",
    JobStatus.SUCCEEDED: "Job finished successfully.",
    JobStatus.FAILED: "Job failed.",
}


@dataclasses.dataclass
class JobInfo:
    """The record of a submitted job; times are in milliseconds since the epoch."""

    status: JobStatus
    entrypoint: str
    message: str | None = None
    error_type: JobErrorType | None = None
    start_time: int | None = None
    end_time: int | None = None
    metadata: dict[str, str] | None = None
    runtime_env: dict[str, Any] | None = None
    entrypoint_num_cpus: float | None = None
    entrypoint_num_gpus: float | None = None
    entrypoint_memory: int | None = None
    entrypoint_resources: dict[str, float] | None = None
    driver_agent_http_address: str | None = None
    driver_node_id: str | None = None
    driver_exit_code: int | None = None

    def __post_init__(self):
        if isinstance(self.status, str):
            self.status = JobStatus(self.status)
        if self.message is None:
            self.message = _MESSAGES[self.status]


class _Record:
    """The methods of pydantic models that callers of Ray's own records use."""

    def dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)  # type: ignore[call-overload]

    model_dump = dict


@dataclasses.dataclass
class DriverInfo(_Record):
    """The driver of a job: its job id, the address of its node and its process id."""

    id: str
    node_ip_address: str
    pid: str


@dataclasses.dataclass
class JobDetails(_Record):
    """A submitted job or that of a driver; times are in milliseconds since the epoch."""

    type: JobType
    job_id: str | None = None
    submission_id: str | None = None
    driver_info: DriverInfo | None = None
    status: JobStatus = JobStatus.PENDING
    entrypoint: str = ""
    message: str | None = None
    error_type: str | None = None
    start_time: int | None = None
    end_time: int | None = None
    metadata: dict[str, str] | None = None
    runtime_env: dict[str, Any] | None = None
    driver_agent_http_address: str | None = None
    driver_node_id: str | None = None
    driver_exit_code: int | None = None

    def __post_init__(self):
        self.type, self.status = JobType(self.type), JobStatus(self.status)
        if isinstance(self.driver_info, dict):
            self.driver_info = DriverInfo(**self.driver_info)


_DETAILS = {field.name for field in dataclasses.fields(JobDetails)}


def details_of(answer: dict[str, Any]) -> JobDetails:
    """Makes a record of the REST interface's JSON; unknown fields of later versions are ignored."""
    return JobDetails(**{name: value for name, value in answer.items() if name in _DETAILS})
