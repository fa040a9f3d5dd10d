# With max_calls=2 the worker process leaves after two executions.
import os
import ray


@ray.remote(max_calls=2)
def f():
    return os.getpid()


ray.init(num_cpus=1, include_dashboard=False)
pids = [ray.get(f.remote()) for _ in range(4)]
print(pids[0] == pids[1], pids[2] == pids[3], pids[0] == pids[2])
