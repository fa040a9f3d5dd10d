# topology_strategy maps labels to strategies; only STRICT_PACK serves other labels than the node.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=4, include_dashboard=False, labels={"zone": "a"})


def make(topology, **kwargs):
    return placement_group([{"CPU": 0.1}], topology_strategy=topology, **kwargs).wait(30)


for topology in ("zone", ["zone"], 5):
    show(repr(topology), lambda: make(topology), "must be a dict")
for strategy in ("NEAR", "strict_pack", None, 1):
    show(repr(strategy), lambda: make({"zone": strategy}), "Invalid topology strategy", "zone")
for strategy in ("PACK", "SPREAD", "STRICT_SPREAD"):
    show(strategy, lambda: make({"zone": strategy}), "not supported yet", "zone")
for topology in ({1: "STRICT_PACK"}, {"": "STRICT_PACK"}):
    show(repr(topology), lambda: make(topology), "non-empty strings")
show("two labels", lambda: make({"zone": "STRICT_PACK", "b": "STRICT_PACK"}), "at most one")
show("with a strategy", lambda: make({"zone": "STRICT_PACK"}, strategy="PACK"), "both")
show("none", lambda: (make(None), make({})))
show("a label", lambda: make({"zone": "STRICT_PACK"}))
show("the node", lambda: [make({"ray.io/node-id": s}) for s in ("PACK", "STRICT_SPREAD")])
show("label and node", lambda: make({"zone": "STRICT_PACK", "ray.io/node-id": "SPREAD"}))
show(
    "with selectors",
    lambda: make({"zone": "STRICT_PACK"}, bundle_label_selector=[{"zone": "a"}]),
)
