# get of a failed ref raises again, and raises in another task.
import ray
from conform import show


@ray.remote(max_retries=0)
def bad():
    raise ValueError("stays")


@ray.remote(max_retries=0)
def read(box):
    try:
        ray.get(box[0])
    except Exception as error:
        return type(error).__name__, isinstance(error, ValueError), type(error.cause).__name__


ray.init(num_cpus=2, include_dashboard=False)
ref = bad.remote()
show("first", lambda: ray.get(ref))
show("second", lambda: ray.get(ref))
show("in a task", lambda: ray.get(read.remote([ref])))
