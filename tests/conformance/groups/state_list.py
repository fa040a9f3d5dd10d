# The state API lists groups, with more columns in detail.
# needs: extras
# timeout: 120
import os
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group
from waiting import until

context = ray.init(num_cpus=2, include_dashboard=True)  # Ray's dashboard serves the state API.
os.environ["RAY_ADDRESS"] = context.address_info["address"]


def listed(**kwargs):
    from ray.util.state import list_placement_groups

    return sorted(list_placement_groups(**kwargs), key=lambda row: row.name)


created = placement_group([{"CPU": 1}, {"CPU": 0.5}], name="a", strategy="SPREAD")
detached = placement_group([{"CPU": 0.5}], name="b", lifetime="detached")
pending = placement_group([{"CPU": 50}], name="c", bundle_label_selector=[{"x": "y"}])
removed = placement_group([{"x": 1}], name="d")
remove_placement_group(removed)
until(lambda: created.wait(1) and detached.wait(1))
until(lambda: placement_group_table(removed)["state"] == "REMOVED")
until(lambda: placement_group_table(pending)["stats"]["scheduling_state"] == "INFEASIBLE")
for row in listed():
    print(row.name, row.state, row.creator_job_id, row.bundles, row.is_detached, row.stats)
for row in listed(detail=True):
    print(row.name, row.is_detached, row.topology_strategy, row.topology_assignments)
    for bundle in row.bundles:
        print(
            " ",
            bundle["bundle_id"]["placement_group_id"] == row.placement_group_id,
            bundle["bundle_id"]["bundle_index"],
            bundle["unit_resources"],
            bundle["label_selector"],
            len(bundle["node_id"]),
        )
    print(" ", sorted(row.stats), row.stats["scheduling_state"])
    print(" ", {key: type(value).__name__ for key, value in sorted(row.stats.items())})
show("filter", lambda: [row.name for row in listed(filters=[("state", "=", "PENDING")])])
show("not", lambda: [row.name for row in listed(filters=[("name", "!=", "a")])])
show(
    "detached",
    lambda: [r.name for r in listed(filters=[("is_detached", "=", "True")], detail=True)],
)
show("limit", lambda: len(listed(limit=2)))
show("wrong column", lambda: listed(filters=[("bundles", "=", "x")]), "not supported")
