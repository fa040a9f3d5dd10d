# The strategy classes refuse bad arguments.
import ray
from conform import show
from ray.util.scheduling_strategies import (
    DoesNotExist,
    Exists,
    In,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
    NotIn,
    PlacementGroupSchedulingStrategy,
)

show("labels none", lambda: NodeLabelSchedulingStrategy(hard={}))
show("labels type", lambda: NodeLabelSchedulingStrategy(hard=[]))
show("labels value", lambda: NodeLabelSchedulingStrategy(hard={"a": "b"}))
show(
    "labels",
    lambda: (
        type(
            NodeLabelSchedulingStrategy(
                hard={"a": In("b"), "c": NotIn("d")}, soft={"e": Exists(), "f": DoesNotExist()}
            )
        ).__name__
    ),
)
show("in none", lambda: In() and "accepted")
show("in int", lambda: In(1) and "accepted")
show("affinity", lambda: NodeAffinitySchedulingStrategy("ff" * 28, soft=True).soft)
show("affinity bad", lambda: NodeAffinitySchedulingStrategy("xyz", soft=True))
show("group index", lambda: PlacementGroupSchedulingStrategy(None) and "accepted")
