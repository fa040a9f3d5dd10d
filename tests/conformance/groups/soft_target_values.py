# The private option _soft_target_node_id belongs to STRICT_PACK.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=4, include_dashboard=False)
node = ray.get_runtime_context().get_node_id()


def make(target, **kwargs):
    return placement_group([{"CPU": 1}], _soft_target_node_id=target, **kwargs).wait(30)


show("with PACK", lambda: make(node, strategy="PACK"), "STRICT_PACK")
show("with no strategy", lambda: make(node), "STRICT_PACK")
show("this node", lambda: make(node, strategy="STRICT_PACK"))
show("unknown node", lambda: make("ab" * 28, strategy="STRICT_PACK"))
show("not an id", lambda: make("zz", strategy="STRICT_PACK"), "Invalid hex ID", "zz")
show("too short", lambda: make("ab", strategy="STRICT_PACK"), "Invalid hex ID", "ab")
show("a number", lambda: make(5, strategy="STRICT_PACK"))
show("None", lambda: make(None))
