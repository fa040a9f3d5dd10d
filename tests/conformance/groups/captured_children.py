# Children of a task that captures run in its group, unless their options say otherwise.
import ray
from ray.util import get_current_placement_group, placement_group
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)


@ray.remote(num_cpus=0.5)
def child(groups):
    group = get_current_placement_group()
    return next((name for name, one in groups.items() if one == group), "no group")


@ray.remote(num_cpus=0.5)
def parent(groups):
    node = ray.get_runtime_context().get_node_id()
    found = {}
    for label, options in {
        "nothing": {},
        "a name": {"name": "n"},
        "label_selector": {"label_selector": {"ray.io/node-id": node}},
        "strategy None": {"scheduling_strategy": None},
        "DEFAULT": {"scheduling_strategy": "DEFAULT"},
        "SPREAD": {"scheduling_strategy": "SPREAD"},
        "affinity": {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)},
        "group None": {"placement_group": None},
        "group default": {"placement_group": "default"},
        "group empty": {"placement_group": PlacementGroup.empty()},
        "strategy with None": {"scheduling_strategy": PlacementGroupSchedulingStrategy(None)},
        "strategy with default": {
            "scheduling_strategy": PlacementGroupSchedulingStrategy("default")
        },
        "other group": {"scheduling_strategy": PlacementGroupSchedulingStrategy(groups["other"])},
        "index": {"placement_group_bundle_index": 0},
        "index -1": {"placement_group_bundle_index": -1},
        "capture": {"placement_group_capture_child_tasks": True},
        "no capture": {"placement_group_capture_child_tasks": False},
    }.items():
        try:
            found[label] = ray.get(child.options(**options).remote(groups), timeout=120)
        except ValueError as error:
            found[label] = f"{type(error).__name__}, {'bundle index' in str(error)}"
    return found


ray.init(num_cpus=4, include_dashboard=False)
groups = {"group": placement_group([{"CPU": 1}]), "other": placement_group([{"CPU": 1}])}
for label, strategy in (
    ("captures", PlacementGroupSchedulingStrategy(groups["group"], 0, True)),
    ("does not capture", PlacementGroupSchedulingStrategy(groups["group"], 0)),
    ("is in no group", "DEFAULT"),
):
    print(f"the parent {label}")
    found = ray.get(parent.options(scheduling_strategy=strategy).remote(groups))
    for name, group in found.items():
        print(f"  {name}: {group}")
