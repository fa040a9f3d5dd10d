# The texts of exceptions that are made by hand.
import ray
from conform import show

e = ray.exceptions
show("TaskCancelledError", lambda: str(e.TaskCancelledError()))
show("WorkerCrashedError", lambda: str(e.WorkerCrashedError())[:60])
show("ActorDiedError", lambda: str(e.ActorDiedError()))
show("ActorUnavailableError", lambda: str(e.ActorUnavailableError("gone", b"\0" * 16))[:80])
show("OutOfMemoryError", lambda: str(e.OutOfMemoryError("oom")))
show("NodeDiedError", lambda: str(e.NodeDiedError("node")))
show("GetTimeoutError", lambda: str(e.GetTimeoutError("t")))
show("RuntimeEnvSetupError", lambda: str(e.RuntimeEnvSetupError("env")))
show("TaskUnschedulableError", lambda: str(e.TaskUnschedulableError("why")))
show("ActorUnschedulableError", lambda: str(e.ActorUnschedulableError("why")))
show("RaySystemError", lambda: str(e.RaySystemError("sys")))
show(
    "RayTaskError",
    lambda: type(e.RayTaskError("f", "trace", ValueError("v")).as_instanceof_cause()).__name__,
)
show("RayTaskError text", lambda: str(e.RayTaskError("f", "trace", ValueError("v"))))
show("ObjectFreedError", lambda: type(e.ObjectFreedError("ff" * 28, None, "")).__name__)
show("PendingCallsLimitExceeded", lambda: str(e.PendingCallsLimitExceeded("x")))
