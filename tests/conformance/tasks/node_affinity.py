# NodeAffinitySchedulingStrategy with this node, an unknown node (hard, soft), bad arguments.
import ray
from conform import show
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

ray.init(num_cpus=1, include_dashboard=False)
here = ray.get_runtime_context().get_node_id()
other = ray.NodeID.from_random().hex()
f = ray.remote(lambda: ray.get_runtime_context().get_node_id() == here)
show(
    "here",
    lambda: ray.get(
        f.options(scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False)).remote()
    ),
)
show(
    "unknown soft",
    lambda: ray.get(
        f.options(scheduling_strategy=NodeAffinitySchedulingStrategy(other, soft=True)).remote()
    ),
)
show(
    "unknown hard",
    lambda: ray.get(
        f.options(scheduling_strategy=NodeAffinitySchedulingStrategy(other, soft=False)).remote(),
        timeout=120,
    ),
)
show("bad id", lambda: NodeAffinitySchedulingStrategy("zz", soft=False) and "accepted")
show(
    "spill without soft",
    lambda: (
        NodeAffinitySchedulingStrategy(here, soft=False, _spill_on_unavailable=True) and "accepted"
    ),
)
show(
    "fail without hard",
    lambda: (
        NodeAffinitySchedulingStrategy(here, soft=True, _fail_on_unavailable=True) and "accepted"
    ),
)
