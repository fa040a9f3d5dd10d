"""Why a runtime environment cannot be made."""

from __future__ import annotations

# node_manager/process/job_processes.cc looks for this text in the output of a driver.
FAILED = "The runtime environment could not be made: "


class SetupError(Exception):
    """The environment cannot be made; the text says which part and why."""
