# Cancelling a stream before it starts, while it runs, and by force drops untaken items.
import os
import tempfile
import time
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote
def stuck(name):
    yield 1
    yield 2
    open(os.path.join(folder, name), "w").close()
    for _ in range(1500):
        time.sleep(0.02)


@ray.remote(num_cpus=2)
def f(n):
    yield from range(n)


def started(name):
    while not os.path.exists(os.path.join(folder, name)):
        time.sleep(0.01)


def items(what, generator, n=3):
    for _ in range(n):
        show(what, lambda: ray.get(next(generator)))
    show(what + " completed", lambda: ray.get(generator.completed()))


ray.init(num_cpus=2, include_dashboard=False)
generator = stuck.remote("running")
first = next(generator)
started("running")
ray.cancel(generator)
items("running", generator)
show("taken before", lambda: ray.get(first))
generator = stuck.remote("forced")
started("forced")
ray.cancel(generator, force=True)
items("forced", generator)
blocker = stuck.remote("blocker")
started("blocker")
generator = f.remote(2)
ray.cancel(generator)
items("queued", generator)
