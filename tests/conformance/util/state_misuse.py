# ray.util.state refuses wrong filters; ids that do not exist.
# needs: extras
# timeout: 120
import ray
from conform import show

try:
    ray.init(num_cpus=1, include_dashboard=True)  # Ray's dashboard serves the state API.
except NotImplementedError:
    ray.init(num_cpus=1)


def call(name, *args, **kwargs):
    from ray.util import state

    return getattr(state, name)(*args, **kwargs)


show("bad predicate", lambda: call("list_tasks", filters=[("name", ">", "x")]))
show("bad key", lambda: call("list_tasks", filters=[("colour", "=", "x")]))
show(
    "conflict",
    lambda: call("list_actors", filters=[("state", "=", "ALIVE"), ("state", "=", "DEAD")]),
)
show("unknown actor", lambda: call("get_actor", "ff" * 16))
show("nodes", lambda: [(n.state, n.is_head_node) for n in call("list_nodes")])
show("jobs", lambda: [(j.type, j.status) for j in call("list_jobs")])
show("workers", lambda: len(call("list_workers")) >= 1)
show("limit", lambda: call("list_tasks", limit=0))
show("groups", lambda: list(call("list_placement_groups")))
