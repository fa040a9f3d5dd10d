"""The functions and actors that stress.py runs. Values are arrays with known contents and sizes
(made()), and every function returns what it saw of its arguments (whole())."""

import asyncio
import threading

import numpy as np

import ray
from waiting import eventually

# No call is retried: a lost process must be seen as an error.
never_again = ray.remote(max_retries=0)


def last(seconds):
    eventually(lambda: False, seconds)


def made(k, size):
    return np.full(size, k % 251, dtype=np.uint8)


def whole(array):
    """Checks an array, and returns the arguments that made() had: (k % 251, size)."""
    assert array.min() == array.max()
    return int(array[0]), array.size


@never_again
def make(k, size):
    return made(k, size)


@never_again
def make_inside(k, size):
    return [ray.put(made(k, size))]


@ray.remote(max_calls=1, max_retries=0)
def make_once(k, size):
    return [ray.put(made(k, size))]


@never_again
def read(seconds, *arrays):
    last(seconds)
    return [whole(array) for array in arrays]


@never_again
def step(k, array):
    """Makes the next array of a chain. The argument and the result exist at the same time."""
    return made(k, whole(array)[1])


@never_again
def get_there(refs):
    return [whole(array) for array in ray.get(refs)]


@never_again
def number(x, seconds=0):
    last(seconds)
    return x


@never_again
def family(depth, width, options, seconds, refs, *arrays):
    """Returns the number of tasks in the tree. Each has the same arguments and gets its children's
    results."""
    seen = [whole(array) for array in arrays]
    last(seconds)
    if depth == 0:
        return 1, seen
    children = [
        family.options(**options[depth - 1]).remote(depth - 1, width, options, seconds, refs, *refs)
        for _ in range(width)
    ]
    below = ray.get(children)
    assert all(other == seen for _, other in below)
    return 1 + sum(count for count, _ in below), seen


@never_again
def holds(x, seconds, options, polls):
    """Keeps its resources until its child, which starts late, has ended."""
    last(seconds)
    child = number.options(**options).remote(x, seconds / 4)
    # These waits are too short for the task to count as blocked.
    while polls and not ray.wait([child], timeout=0.0005)[0]:
        pass
    return ray.get(child)


@never_again
def on_gpu(x, options):
    assert ray.get_gpu_ids()
    return ray.get(number.options(**options).remote(x)) if options else x


@never_again
def make_items(first, count, size):
    for k in range(first, first + count):
        yield made(k, size)


@ray.remote
class Plain:
    def __init__(self, keeps, *arrays):
        self.seen = [whole(array) for array in arrays]
        self.kept = arrays if keeps else ()

    def first(self):
        assert not self.kept or [whole(array) for array in self.kept] == self.seen
        return self.seen

    def read(self, *arrays):
        return [whole(array) for array in arrays]

    def child_reads(self, options, refs, *arrays):
        seen = ray.get(read.options(**options).remote(0, *refs))
        return seen, sum(whole(array)[1] for array in arrays)

    def child(self, x, options):
        return ray.get(number.options(**options).remote(x))


@ray.remote(concurrency_groups={"wait": 2, "set": 1})
class Groups:
    def __init__(self):
        self.lock, self.events = threading.Lock(), {}

    def event(self, key):
        with self.lock:
            return self.events.setdefault(key, threading.Event())

    @ray.method(concurrency_group="wait")
    def wait(self, key, *arrays):
        self.event(key).wait()
        return [whole(array) for array in arrays]

    @ray.method(concurrency_group="set")
    def set(self, key, *arrays):
        self.event(key).set()
        return [whole(array) for array in arrays]

    def other(self, x):
        return x


@ray.remote
class Threads:
    """An actor of which `count` calls meet: all of them must run at the same time."""

    def __init__(self, count):
        self.barrier = threading.Barrier(count)

    def meet(self, *arrays):
        self.barrier.wait()
        return [whole(array) for array in arrays]


@ray.remote
class Loop:
    def __init__(self, *arrays):
        self.seen, self.events = [whole(array) for array in arrays], {}

    async def first(self):
        return self.seen

    async def wait(self, key, *arrays):
        await self.events.setdefault(key, asyncio.Event()).wait()
        return [whole(array) for array in arrays]

    async def set(self, key, *arrays):
        self.events.setdefault(key, asyncio.Event()).set()
        return [whole(array) for array in arrays]

    async def children(self, count, options):
        child = number.options(**options)
        return sum(await asyncio.gather(*(child.remote(1) for _ in range(count))))

    async def items(self, first, count, size):
        for k in range(first, first + count):
            yield made(k, size)
