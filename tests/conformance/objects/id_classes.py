# The id classes have nil, random, hex, sizes, equality, a repr, and can be pickled.
import pickle
import ray
from conform import show

for name in (
    "JobID",
    "ActorID",
    "TaskID",
    "ObjectRef",
    "PlacementGroupID",
    "NodeID",
    "WorkerID",
    "UniqueID",
    "FunctionID",
    "ActorClassID",
    "ClusterID",
):
    kind = getattr(ray, name)
    nil = kind.nil()
    print(
        name,
        nil.is_nil(),
        nil.hex()[:4],
        len(nil.binary()),
        repr(nil)[: len(name) + 3],
        kind.nil() == nil,
        hash(kind.nil()) == hash(nil),
    )
    show("  from_hex", lambda: kind.from_hex(nil.hex()) == nil)
    show("  from_random", lambda: kind.from_random() != kind.from_random())
    show("  short", lambda: kind(b"123"))
    show("  pickle", lambda: pickle.loads(pickle.dumps(nil)) == nil)
print(ray.JobID.from_int(1).hex(), ray.JobID.from_int(1).int())
