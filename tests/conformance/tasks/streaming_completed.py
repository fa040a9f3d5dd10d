# completed() is a ref that is ready when the stream's task ended; it raises the task's error.
import ray
from conform import show


@ray.remote(max_retries=0)
def f(fail):
    yield 1
    if fail:
        raise ValueError("no")


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote(False)
show("done", lambda: ray.get(generator.completed()))
show("items", lambda: [ray.get(r) for r in generator])
generator = f.remote(True)
show("failed", lambda: ray.get(generator.completed()))
