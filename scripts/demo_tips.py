"""Shows four habits that make programs on a cluster fast, with the time that each saves.

`make demo` runs this program as a job.
"""

import time

import ray

ray.init(address="auto")
PAUSE = 0.2


@ray.remote
def work(x):
    time.sleep(PAUSE)
    return x * x


@ray.remote
def uneven(x):
    time.sleep(PAUSE * x)
    return x


@ray.remote
def total(block, factor):
    return sum(block) * factor


@ray.remote
class Counter:
    def __init__(self):
        self.count = 0

    def add(self, n):
        self.count += n
        return self.count


def timed(title, function):
    start = time.perf_counter()
    result = function()
    took = time.perf_counter() - start
    print(f"{title:<58} {took:6.2f} s")
    return result


def main():
    cpus = int(ray.cluster_resources()["CPU"])
    print(f"{len(ray.nodes())} nodes, {cpus} CPUs")
    # The workers start here, so that no measurement includes their start.
    ray.get([work.remote(i) for i in range(cpus)])

    # 1. Get results late: with get() in the loop only one task runs at a time.
    slow = timed("1. get in the loop", lambda: [ray.get(work.remote(i)) for i in range(cpus)])
    fast = timed("   get at the end", lambda: ray.get([work.remote(i) for i in range(cpus)]))
    assert slow == fast == [i * i for i in range(cpus)]

    # 2. Handle results as they come, so that the slowest task does not hold up the others.
    def as_they_come():
        pending, order = [uneven.remote(x) for x in (3, 2, 1, 0)], []
        while pending:
            done, pending = ray.wait(pending)
            order += ray.get(done)
            # This stands for processing one result.
            time.sleep(PAUSE / 4)
        return order

    order = timed("2. results as they come", as_they_come)
    print(f"   they came in the order {order}")
    assert sorted(order) == [0, 1, 2, 3]

    # 3. Put a large argument into the object store once; all tasks then read the same copy.
    block = list(range(200_000))

    def shared():
        ref = ray.put(block)
        return ray.get([total.remote(ref, k) for k in range(8)])

    copied = timed(
        "3. the same argument eight times",
        lambda: ray.get([total.remote(block, k) for k in range(8)]),
    )
    once = timed("   one put, eight reads", shared)
    assert copied == once == [sum(block) * k for k in range(8)]

    # 4. Keep state in an actor: its calls are ordered and cheap.
    counter = Counter.remote()
    counts = timed(
        "4. 1,000 calls of one actor", lambda: ray.get([counter.add.remote(1) for _ in range(1000)])
    )
    assert counts == list(range(1, 1001))
    print("all results are right")


main()
