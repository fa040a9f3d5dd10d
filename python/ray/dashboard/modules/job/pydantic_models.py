"""Types of ray.job_submission under the names by which packages import them."""

from ray.job_submission import DriverInfo, JobDetails, JobStatus, JobType

__all__ = ["DriverInfo", "JobDetails", "JobStatus", "JobType"]
