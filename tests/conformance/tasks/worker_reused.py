# Without max_calls, one worker runs task after task.
import os
import ray

ray.init(num_cpus=1, include_dashboard=False)


@ray.remote
def pid():
    return os.getpid()


print(len({ray.get(pid.remote()) for _ in range(5)}))
