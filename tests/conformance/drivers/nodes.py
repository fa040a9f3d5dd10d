# ray.nodes() describes the one node.
import ray

ray.init(num_cpus=2, resources={"a": 1}, labels={"zone": "b"}, include_dashboard=False)
(node,) = ray.nodes()
print(sorted(node))
print(
    node["Alive"],
    node["alive"],
    node["Resources"]["CPU"],
    node["Resources"]["a"],
    node["Labels"]["zone"],
    "ray.io/node-id" in node["Labels"],
)
print(
    node["NodeID"] == ray.get_runtime_context().get_node_id(),
    node["DeathReason"],
    repr(node["DeathReasonMessage"]),
)
