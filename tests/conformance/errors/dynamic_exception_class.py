# Exception classes made inside the task or local to a function.
import ray
from conform import show


@ray.remote(max_retries=0)
def f():
    class Local(KeyError):
        extra = 5

    raise Local("made here")


ray.init(num_cpus=1, include_dashboard=False)
show("get", lambda: ray.get(f.remote()))
try:
    ray.get(f.remote())
except KeyError as error:
    print(type(error.cause).__name__, error.cause.extra, error.extra)
