# A stream that fails gives one more ref, which raises, and then ends.
import ray
from conform import show


@ray.remote(max_retries=0)
def f():
    yield 1
    raise ValueError("midway")


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote()
show("first", lambda: ray.get(next(generator)))
second = next(generator)
show("second", lambda: ray.get(second))
show("end", lambda: next(generator))
show("still", lambda: next(generator))
