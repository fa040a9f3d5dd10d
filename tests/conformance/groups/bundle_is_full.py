# Tasks in one bundle run one after the other as its CPU allows; another bundle is free meanwhile.
import os
import tempfile
import time
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import Flag, await_flag


@ray.remote
def hold(started, path):
    started.raise_it.remote()
    while not os.path.exists(path):
        time.sleep(0.02)
    return "held"


f = ray.remote(lambda: "ran")
ray.init(num_cpus=4, include_dashboard=False)
started, path = Flag.remote(), os.path.join(tempfile.mkdtemp(), "go")
group = placement_group([{"CPU": 1}, {"CPU": 1}])


def within(index):
    return PlacementGroupSchedulingStrategy(group, index)


held = hold.options(scheduling_strategy=within(0)).remote(started, path)
await_flag(started)
waits = f.options(scheduling_strategy=within(0)).remote()
show("bundle 0", lambda: ray.get(waits, timeout=1))
show("no CPU", lambda: ray.get(f.options(scheduling_strategy=within(0), num_cpus=0).remote()))
show("bundle 1", lambda: ray.get(f.options(scheduling_strategy=within(1)).remote()))
show("any", lambda: ray.get([f.options(scheduling_strategy=within(-1)).remote() for _ in range(3)]))
open(path, "w").close()
show("then", lambda: ray.get([held, waits], timeout=120))
