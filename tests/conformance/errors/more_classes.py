# Rarely used exception classes: their bases, and how they are made.
import ray.exceptions as ex
from conform import show

for name in (
    "StreamingGeneratorReplayInconsistentError",
    "OufOfBandObjectRefSerializationException",
    "RayDirectTransportError",
    "RayCgraphCapacityExceeded",
):
    kind = getattr(ex, name)
    print(name, [base.__name__ for base in kind.__mro__[1:4]])
show(
    "reconstruction",
    lambda: ex.ObjectReconstructionFailedError("ab" * 28, "", "").object_ref_hex[:4],
)
show(
    "as_instanceof_cause",
    lambda: type(ex.RayTaskError("f", "text", KeyError("k")).as_instanceof_cause()).__name__,
)
