"""The codes of errors of the runtime, as C++ numbers them; errors.py has the exceptions.

The code of an exception that user code raised is `_raylet.TASK_RAISED`.
"""

from __future__ import annotations

# The numbers of ExitInfo.Kind in common.proto.
UNSCHEDULABLE_EXIT, GROUP_REMOVED_EXIT = 11, 12
# These are the codes of common/base/status.h, in its order.
(
    INVALID,
    NOT_FOUND,
    ALREADY_EXISTS,
    TIMEOUT,
    UNAVAILABLE,
    UNAUTHENTICATED,
    WRONG_VERSION,
    WRONG_CLUSTER,
    PROTOCOL,
    OBJECT_STORE_FULL,
    OUT_OF_DISK,
    OBJECT_LOST,
    OWNER_DIED,
    WORKER_CRASHED,
    NODE_DIED,
    ACTOR_DIED,
    ACTOR_UNAVAILABLE,
    CANCELLED,
    IO,
    INTERNAL,
    UNSUPPORTED,
    RESOURCE_EXHAUSTED,
    OUT_OF_MEMORY,
    UNSCHEDULABLE,
    LOCAL_NODE_DIED,
    RUNTIME_ENV_SETUP,
) = range(1, 27)
