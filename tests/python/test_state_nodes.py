"""ray.util.state lists the entries of all nodes; here there are two."""

import ray
from ray.cluster_utils import Cluster
from ray.util import state
from waiting import until


def test_entries_of_two_nodes_are_listed(no_cluster):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        other = cluster.add_node(num_cpus=1, resources={"other": 1})
        ray.init(address=cluster.address)

        @ray.remote(resources={"other": 0.1})
        class There:
            def make(self):
                print("made there", flush=True)
                return ray.put(bytes(1_000_000))

            def node(self):
                return ray.get_runtime_context().get_node_id()

        there = There.remote()
        node = ray.get(there.node.remote())
        assert {n.node_id: n.is_head_node for n in state.list_nodes()} == {
            node: False,
            ray.get_runtime_context().get_node_id(): True,
        }
        [inner] = [ray.get(there.make.remote())]
        assert state.get_actor(there._actor_id.hex()).node_id == node
        makes = until(
            lambda: state.list_tasks(
                filters=[("name", "=", "There.make"), ("state", "=", "FINISHED")]
            ),
            len,
        )
        assert makes[0].node_id == node
        seen = {(entry.type, entry.reference_type) for entry in state.get_objects(inner.hex())}
        assert {kind for kind, _ in seen} == {"DRIVER", "WORKER"}
        assert ray.experimental.get_object_locations([inner])[inner]["node_ids"] == [node]
        until(
            lambda: "".join(state.get_log(actor_id=there._actor_id.hex())),
            lambda text: "made there" in text,
        )
        assert any(worker.node_id == node for worker in state.list_workers())
        cluster.remove_node(other)
        until(lambda: state.get_node(node), lambda entry: entry.state == "DEAD")
        assert state.list_workers(filters=[("node_id", "=", node)]) == []
        # The head keeps what the node has told it.
        assert state.list_tasks(filters=[("name", "=", "There.make")])[0].state == "FINISHED"
    finally:
        ray.shutdown()
        cluster.shutdown()
