# The items of a repeated stream come once; without retries the system's error ends it.
import os
import tempfile
import time
import ray
from conform import show

folder = tempfile.mkdtemp()


def first_time(name):
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return False
    open(path, "w").close()
    return True


@ray.remote(max_retries=1)
def dies():
    yield 1
    yield 2
    time.sleep(1)
    if first_time("dies"):
        os._exit(1)
    yield 3


@ray.remote(max_retries=0)
def lost():
    yield 1
    time.sleep(1)
    os._exit(1)


@ray.remote(num_returns="dynamic", max_retries=0, retry_exceptions=True)
def dynamic():
    yield 1
    raise ValueError("no retries")


@ray.remote
def passes(x):
    yield x


ray.init(num_cpus=2, include_dashboard=False)
show("dies", lambda: [ray.get(ref) for ref in dies.remote()])
generator = lost.remote()
for _ in range(3):
    show("lost", lambda: ray.get(next(generator)))
show("lost completed", lambda: ray.get(generator.completed()))
show("dynamic", lambda: len(list(ray.get(dynamic.remote()))))
generator = passes.remote(ray.remote(max_retries=0)(lambda: 1 / 0).remote())
for _ in range(2):
    show("argument failed", lambda: ray.get(next(generator)))
show("argument failed completed", lambda: ray.get(generator.completed()))
