# ray._private.state returns nodes and their resources as lists and dicts.
import ray
import ray._private.state as state
from conform import show

ray.init(num_cpus=3)
(node,) = ray.nodes()
show(
    "node_ids",
    lambda: (
        state.node_ids() == [f"node:{node['NodeManagerAddress']}"]
        or state.node_ids() == [node["NodeID"]]
    ),
)
show("total", lambda: state.total_resources_per_node()[node["NodeID"]]["CPU"])
show("available", lambda: state.available_resources_per_node()[node["NodeID"]]["CPU"])
