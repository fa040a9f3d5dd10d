# The state API finds a group by its id.
# needs: extras
# timeout: 120
import os
import ray
from conform import show
from ray.util import placement_group
from waiting import until

context = ray.init(num_cpus=2, include_dashboard=True)  # Ray's dashboard serves the state API.
os.environ["RAY_ADDRESS"] = context.address_info["address"]


def found(key):
    from ray.util.state import get_placement_group

    return get_placement_group(key)


group = placement_group([{"CPU": 1}], name="a")
until(lambda: group.wait(1))
row = found(group.id.hex())
print(type(row).__name__, row.name, row.state, row.is_detached, row.creator_job_id)
print(row.bundles[0]["unit_resources"], row.bundles[0]["bundle_id"]["bundle_index"])
show("unknown", lambda: found("ab" * 18))
show("not an id", lambda: found("xx"))
