# A detached actor, its objects, tasks and actors go on after the end of its job.
# timeout: 120
import os
import subprocess
import sys
import ray

DRIVER = """
import sys, time
import numpy as np
import ray
from conform import show

ray.init(address="auto", namespace="n", log_to_driver=False, logging_level="error")


@ray.remote
def leaf(n):
    return np.ones(n)


@ray.remote
def middle(n):
    return [leaf.remote(n), ray.put(np.ones(n + 1))]


@ray.remote
def slow():
    time.sleep(2)
    return 7


@ray.remote
class Child:
    def __init__(self, n):
        self.n, self.own = n, ray.put(np.ones(n))

    def read(self):
        return int(ray.get(self.own).sum()), int(ray.get(leaf.remote(self.n)).sum())

    def lend(self):
        return [self.own]


@ray.remote
class Keeper:
    def __init__(self):
        self.refs, self.children, self.drivers = [], [], None

    def put(self, n):
        self.refs.append(ray.put(np.ones(n)))

    def task(self, n):
        self.refs.append(leaf.remote(n))
        return int(ray.get(leaf.remote(n)).sum())

    def tasks_of_tasks(self, n):
        self.refs += ray.get(middle.remote(n))

    def child(self, n):
        self.children.append(Child.remote(n))
        self.refs += ray.get(self.children[-1].lend.remote())

    def begin(self):
        self.later = slow.remote()

    def end(self):
        return ray.get(self.later)

    def keep(self, refs):
        self.drivers = refs

    def read_kept(self):
        return int(ray.get(self.drivers[0]).sum())

    def read(self):
        return [int(ray.get(ref).sum()) for ref in self.refs], ray.get([child.read.remote() for child in self.children])


def kept():
    try:
        return ray.get(keeper.read_kept.remote())
    except ray.exceptions.RayTaskError as error:
        return type(error.cause).__name__


if sys.argv[1] == "0":
    keeper = Keeper.options(name="keeper", lifetime="detached").remote()
    of_driver = ray.put(np.ones(100_000))
    ray.get(keeper.keep.remote([of_driver]))
else:
    keeper = ray.get_actor("keeper")
    show("begun before", lambda: ray.get(keeper.end.remote()))
show("the first driver's", kept)
n = 200_000 + 1000 * int(sys.argv[1])
show("put", lambda: ray.get(keeper.put.remote(n)))
show("task", lambda: ray.get(keeper.task.remote(n + 10)))
show("tasks of tasks", lambda: ray.get(keeper.tasks_of_tasks.remote(n + 20)))
show("child", lambda: ray.get(keeper.child.remote(n + 30)))
show("read", lambda: ray.get(keeper.read.remote()))
show("begin", lambda: ray.get(keeper.begin.remote()))
"""
context = ray.init(num_cpus=3, include_dashboard=False)
for turn in range(3):
    out = subprocess.run(
        [sys.executable, "-c", DRIVER, str(turn)],
        env={**os.environ, "RAY_ADDRESS": context.address_info["address"]},
        capture_output=True,
        text=True,
    )
    print(turn, out.stdout + out.stderr[-2000:] * (out.returncode != 0))
