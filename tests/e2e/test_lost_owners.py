"""A process that owned objects is lost with its node: what other nodes store for it is freed."""

from cluster import cluster
from waiting import until

import ray
from ray._private import internal_api


@ray.remote(resources={"owner": 1}, max_restarts=0)
class Owner:
    def make_elsewhere(self):
        blob = ray.remote(resources={"holder": 1})(lambda: b"1" * 1_000_000)
        self.ref = blob.remote()
        ray.wait([self.ref], fetch_local=False)


def stored():
    return internal_api.memory_summary(stats_only=True)


def test_what_is_stored_for_a_process_of_a_lost_node_is_freed():
    with cluster() as c:
        c.join(resources={"holder": 1})
        of_owner = c.join(resources={"owner": 1})
        c.await_nodes(3)
        owner = Owner.remote()
        ray.get(owner.make_elsewhere.remote())
        assert "1 objects" in stored()
        c.kill(of_owner, "ray-node-manager")
        c.await_nodes(2)
        # The job goes on, so that its end is not what frees it.
        until(stored, lambda text: "0 MiB, 0 objects" in text)
