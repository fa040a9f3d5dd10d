# TaskCancelledError names the task.
import time
import ray

ray.init(num_cpus=1, include_dashboard=False)
blocker = ray.remote(lambda: time.sleep(30)).remote()
ref = ray.remote(lambda: 1).remote()
ray.cancel(ref)
try:
    ray.get(ref)
except ray.exceptions.TaskCancelledError as error:
    print(type(error).__name__, error.task_id == ref.task_id(), ref.task_id().hex() in str(error))
