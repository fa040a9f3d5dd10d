"""Why an environment cannot be made."""

from __future__ import annotations

FAILED = "The runtime environment could not be made: "  # of a driver, looked for by node_manager/process/job_processes.cc


class SetupError(Exception):
    """The environment cannot be made; the text says which part and why."""
