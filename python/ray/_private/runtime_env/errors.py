"""The errors of a runtime environment that cannot be made."""

from __future__ import annotations

# node_manager/process/job_processes.cc looks for this text in the output of a driver.
FAILED = "The runtime environment could not be made: "
# This is kRuntimeEnvSetup of common/base/status.h.
EXIT_CODE = 26
_UNSUPPORTED_FIELDS = {
    "conda": "conda environments",
    "uv": "uv environments",
    "container": "containers",
    "image_uri": "container images",
    "java_jars": "Java",
    "_nsight": "Nsight profiling",
    "_rocprof_sys": "rocprof-sys profiling",
}


class SetupError(Exception):
    """The environment cannot be made; the text says which part and why."""


def refuse_unsupported_fields(env: dict):
    """Raises SetupError for fields that this release cannot make."""
    for field, what in _UNSUPPORTED_FIELDS.items():
        if env.get(field):
            raise SetupError(f"runtime_env field {field!r}: {what} are not in this release")
