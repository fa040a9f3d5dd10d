# ray.util.state lists tasks and actors with filters.
# needs: extras
# timeout: 120
import time
import ray
from conform import show


@ray.remote
def worked():
    return 1


@ray.remote(max_retries=0)
def failed():
    raise ValueError("x")


@ray.remote
class A:
    def m(self):
        return 1


try:
    ray.init(num_cpus=1, include_dashboard=True)  # Ray's dashboard serves the state API.
except NotImplementedError:
    ray.init(num_cpus=1)
a = A.options(name="mine").remote()
ray.get([worked.remote(), worked.remote(), a.m.remote()])
ray.wait([failed.remote()])


def run(call, good):
    for _ in range(40):
        value = call()
        if good(value):
            break
        time.sleep(0.25)
    return value


def tasks():
    from ray.util.state import list_tasks

    found = run(
        lambda: list_tasks(detail=True),
        lambda v: sum(t.state in ("FINISHED", "FAILED") for t in v) >= 4,
    )
    return sorted(
        (t.name, t.state, t.error_type)
        for t in found
        if t.type != "DRIVER_TASK" and "init" not in t.name
    )


def actors():
    from ray.util.state import list_actors

    return [
        (x.class_name, x.state, x["name"], len(x.actor_id))
        for x in list_actors(filters=[("name", "=", "mine")])
    ]


def summary():
    from ray.util.state import summarize_tasks

    return sorted(summarize_tasks()["cluster"]["summary"])


show("tasks", tasks)
show("actors", actors)
show("summary", summary)
