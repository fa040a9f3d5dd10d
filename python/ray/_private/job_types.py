"""Names of jobs' states and kinds, as `ray.job_submission` and `ray.util.state` show them."""
from __future__ import annotations

from enum import Enum


class JobStatus(str, Enum):
    """Of a job; a driver's job is RUNNING or SUCCEEDED."""
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

    def __str__(self) -> str:
        return self.value
