"""The codes of errors of the runtime, as C++ numbers them; errors.py has the exceptions.

The code of an exception that user code raised is `_raylet.TASK_RAISED`.
"""

from __future__ import annotations

from ray import _raylet

_codes = _raylet.ERROR_CODES
# The reasons of ends, from ExitInfo.Kind of common.proto.
UNSCHEDULABLE_EXIT = _codes["UNSCHEDULABLE_EXIT"]
GROUP_REMOVED_EXIT = _codes["GROUP_REMOVED_EXIT"]
# The codes of common/base/status.h.
INVALID = _codes["INVALID"]
NOT_FOUND = _codes["NOT_FOUND"]
ALREADY_EXISTS = _codes["ALREADY_EXISTS"]
TIMEOUT = _codes["TIMEOUT"]
UNAVAILABLE = _codes["UNAVAILABLE"]
UNAUTHENTICATED = _codes["UNAUTHENTICATED"]
WRONG_VERSION = _codes["WRONG_VERSION"]
WRONG_CLUSTER = _codes["WRONG_CLUSTER"]
PROTOCOL = _codes["PROTOCOL"]
OBJECT_STORE_FULL = _codes["OBJECT_STORE_FULL"]
OUT_OF_DISK = _codes["OUT_OF_DISK"]
OBJECT_LOST = _codes["OBJECT_LOST"]
OWNER_DIED = _codes["OWNER_DIED"]
WORKER_CRASHED = _codes["WORKER_CRASHED"]
NODE_DIED = _codes["NODE_DIED"]
ACTOR_DIED = _codes["ACTOR_DIED"]
ACTOR_UNAVAILABLE = _codes["ACTOR_UNAVAILABLE"]
CANCELLED = _codes["CANCELLED"]
IO = _codes["IO"]
INTERNAL = _codes["INTERNAL"]
UNSUPPORTED = _codes["UNSUPPORTED"]
RESOURCE_EXHAUSTED = _codes["RESOURCE_EXHAUSTED"]
OUT_OF_MEMORY = _codes["OUT_OF_MEMORY"]
UNSCHEDULABLE = _codes["UNSCHEDULABLE"]
LOCAL_NODE_DIED = _codes["LOCAL_NODE_DIED"]
RUNTIME_ENV_SETUP = _codes["RUNTIME_ENV_SETUP"]
