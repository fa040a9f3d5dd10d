# get_object_locations tells where objects are.
import ray
import ray.experimental
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put(bytes(1_000_000))
here = ray.get_runtime_context().get_node_id()


def locations():
    entry = ray.experimental.get_object_locations([ref])[ref]
    return entry["node_ids"] == [here], entry["object_size"] >= 1_000_000, sorted(entry)


show("locations", locations)
