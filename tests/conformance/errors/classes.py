# The exception classes: bases and how they are made by hand.
import ray
from conform import facts, show

e = ray.exceptions
for name in ("RayError", "RayTaskError", "TaskCancelledError", "WorkerCrashedError", "LocalRayletDiedError", "RayActorError", "ActorDiedError", "ActorUnavailableError",
             "RaySystemError", "AuthenticationError", "UserCodeException", "ObjectStoreFullError", "OutOfDiskError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError",
             "ObjectFetchTimedOutError", "RpcError", "ReferenceCountingAssertionError", "ObjectFreedError", "OwnerDiedError", "ObjectReconstructionFailedError", "GetTimeoutError",
             "PlasmaObjectNotAvailable", "AsyncioActorExit", "RuntimeEnvSetupError", "TaskPlacementGroupRemoved", "ActorPlacementGroupRemoved", "PendingCallsLimitExceeded",
             "TaskUnschedulableError", "ActorUnschedulableError", "ObjectRefStreamEndOfStreamError", "CrossLanguageError", "UnserializableException", "RayChannelError",
             "RayChannelTimeoutError", "RayCgraphCapacityExceeded", "ActorAlreadyExistsError", "ActorHandleNotFoundError"):
    show(name, lambda: [base.__name__ for base in getattr(e, name).__bases__])
