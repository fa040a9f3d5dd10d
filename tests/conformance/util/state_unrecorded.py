# Tasks with enable_task_events=False are in no list.
# needs: extras
# timeout: 120
import time
import ray
from conform import show


@ray.remote
def seen():
    return 1


@ray.remote(enable_task_events=False)
def unseen():
    return 1


@ray.remote(max_retries=0, enable_task_events=False)
def unseen_failure():
    raise ValueError("x")


@ray.remote
class Seen:
    def m(self):
        return 1

    @ray.method(enable_task_events=False)
    def unseen_method(self):
        return 1

    def per_call(self):
        return 1


@ray.remote(enable_task_events=False)
class Unseen:
    def quiet(self):
        return 1

    @ray.method(enable_task_events=True)
    def seen_method(self):
        return 1


try:
    ray.init(num_cpus=2, include_dashboard=True)  # Ray's dashboard serves the state API.
except NotImplementedError:
    ray.init(num_cpus=2)
a, b = Seen.remote(), Unseen.remote()
ray.get(
    [
        unseen.remote(),
        unseen.options(enable_task_events=True, name="seen_by_option").remote(),
        seen.options(enable_task_events=False, name="unseen_by_option").remote(),
    ]
)
ray.wait([unseen_failure.remote()])
ray.get(
    [
        a.m.remote(),
        a.unseen_method.remote(),
        a.per_call.options(enable_task_events=False).remote(),
        a.per_call.options(name="seen_call").remote(),
    ]
)
ray.get([b.quiet.remote(), b.seen_method.remote()])
ray.get(seen.remote())
wanted = {"seen", "seen_by_option", "Seen.m", "seen_call"}


def tasks():
    from ray.util.state import list_tasks

    for _ in range(40):
        found = sorted(
            {
                t.name
                for t in list_tasks(detail=True)
                if t.type != "DRIVER_TASK" and t.state == "FINISHED"
            }
        )
        if wanted <= set(found):
            time.sleep(1)
            break
        time.sleep(0.25)
    return sorted({t.name for t in list_tasks(detail=True) if t.type != "DRIVER_TASK"})


show("tasks", tasks)
