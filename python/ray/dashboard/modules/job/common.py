"""Types of ray.job_submission under the names by which packages import them."""

from ray.job_submission import JobErrorType, JobInfo, JobStatus

__all__ = ["JobErrorType", "JobInfo", "JobStatus"]
