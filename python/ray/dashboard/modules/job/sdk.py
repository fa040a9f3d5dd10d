"""The client of ray.job_submission under the name by which packages import it."""

from ray.job_submission import JobDetails, JobStatus, JobSubmissionClient

__all__ = ["JobDetails", "JobStatus", "JobSubmissionClient"]
