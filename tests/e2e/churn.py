"""A mixed load that makes and ends everything a cluster has: tasks, actors, workers, drivers,
objects, names. For hygiene.py.

Each method of Churn is one kind of traffic: it asserts that what it did was right and keeps
nothing. One seed decides the order.
"""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import time

import numpy as np
from waiting import eventually
from ray.experimental import internal_kv

import ray

TIMEOUT_S = 60

DRIVER = """
import os, sys, time
import numpy as np
import ray
ray.init(log_to_driver=False, namespace="churn")

@ray.remote(num_cpus=0.5)
def of_this_driver(x):
    return x.sum(), ray.put(np.ones({size}, dtype=np.uint8))

@ray.remote(num_cpus=0)
class Mine:
    def __init__(self, kept):
        self.kept = kept
    def get(self):
        return ray.get(self.kept[0])

refs = [of_this_driver.remote(np.ones({size}, dtype=np.uint8)) for _ in range(3)]
mine = Mine.remote([ray.put(np.arange({size}))])
assert [ray.get(ref)[0] for ref in refs] == [{size}] * 3
assert ray.get(mine.get.remote())[-1] == {size} - 1
if {detach}:
    left = Mine.options(name="left-{seed}", lifetime="detached").remote([ray.put("of " + str(os.getpid()))])
    ray.get(left.__ray_ready__.remote())
pending = [of_this_driver.remote(np.ones({size}, dtype=np.uint8)) for _ in range(20)]
print("half way", flush=True)
if {dies}:
    time.sleep(60)
"""


@ray.remote
def double(x):
    return 2 * x


@ray.remote
def total(array, *more):
    return int(np.sum(array)) + sum(more)


@ray.remote
def ones(n):
    return np.ones(n, dtype=np.uint8)


@ray.remote
def family(n):
    return sum(ray.get([double.remote(i) for i in range(n)]))


@ray.remote
def refs_of(n, size):
    """Returns references to objects that this worker owns. The worker may be killed as soon as
    somebody has read them."""
    return [ray.put(np.full(size, i, dtype=np.uint8)) for i in range(n)]


@ray.remote(max_retries=0)
def fails(array):
    raise ValueError(f"as asked, with {len(array)} bytes")


@ray.remote(max_retries=0)
def sleeps(seconds, *_):
    time.sleep(seconds)


@ray.remote(num_returns="streaming")
def items(n, size):
    for i in range(n):
        yield np.full(size, i, dtype=np.uint8)


@ray.remote(num_cpus=0)
class Pids:
    """Tasks tell this actor their process ids, so that churn can kill them."""

    def __init__(self):
        self.last = {}

    def tell(self, key, pid):
        self.last[key] = pid

    def ask(self, key):
        return self.last.pop(key, None)


@ray.remote(num_cpus=0)
class Keeper:
    def __init__(self, first=()):
        self.kept = list(first)

    def keep(self, refs):
        self.kept += refs
        return len(self.kept)

    def lend(self):
        return self.kept

    def read(self):
        return sum(int(np.sum(value)) for value in ray.get(self.kept))

    def drop(self):
        self.kept = []

    def pid(self):
        return os.getpid()

    def fail(self):
        raise KeyError("as asked")

    def leave(self):
        ray.actor.exit_actor()


@ray.remote(num_cpus=0)
class Loop:
    async def nap(self, x):
        await asyncio.sleep(0.001)
        return x

    async def forever(self):
        await asyncio.sleep(TIMEOUT_S)


class Churn:
    """`env` and `address` are for drivers that it starts. `bytes` counts what went through the
    store."""

    def __init__(self, rng, env, address):
        self.rng, self.env, self.address = rng, env, address
        self.done = {}
        self.bytes = 0
        self.kinds = [
            self.tasks,
            self.nested,
            self.errors,
            self.values,
            self.actors,
            self.borrowers,
            self.names,
            self.loops,
            self.cancellations,
            self.killed_workers,
            self.killed_actors,
            self.keys,
            self.options,
            self.generators,
        ]

    def round(self):
        kinds = list(self.kinds)
        self.rng.shuffle(kinds)
        for kind in kinds:
            kind()
            self.done[kind.__name__] = self.done.get(kind.__name__, 0) + 1

    def array(self, size):
        self.bytes += size
        return np.ones(size, dtype=np.uint8)

    def tasks(self):
        count = self.rng.randrange(20, 60)
        assert ray.get([double.remote(i) for i in range(count)], timeout=TIMEOUT_S) == [
            2 * i for i in range(count)
        ]
        size = self.rng.randrange(1, 400_000)
        ref = ray.put(self.array(size))
        self.bytes += size
        chain = total.remote(ones.remote(size), total.remote(ref), double.remote(1))
        assert ray.get(chain, timeout=TIMEOUT_S) == 2 * size + 2
        ready, rest = ray.wait(
            [double.remote(i) for i in range(10)], num_returns=5, timeout=TIMEOUT_S
        )
        assert len(ready) == 5 and len(rest) == 5

    def nested(self):
        n = self.rng.randrange(1, 8)
        assert ray.get(family.remote(n), timeout=TIMEOUT_S) == n * (n - 1)
        inner = ray.get(refs_of.remote(3, 150_000), timeout=TIMEOUT_S)
        self.bytes += 450_000
        assert [int(value[0]) for value in ray.get(inner, timeout=TIMEOUT_S)] == [0, 1, 2]

    def errors(self):
        for ref in (fails.remote(self.array(200_000)), total.remote(fails.remote(b"x"))):
            with contextlib.suppress(ValueError):
                ray.get(ref, timeout=TIMEOUT_S)
                raise AssertionError("no error")
        unseen = fails.remote(self.array(10))
        del unseen

    def values(self):
        """Arrays stay readable after the references from which they were read are gone."""
        size = self.rng.randrange(200_000, 3_000_000)
        views = [ray.get(ray.put(self.array(size)))[i:] for i in range(2)]
        other = [ray.put(self.array(size)) for _ in range(2)]
        assert [int(view.sum()) for view in views] == [size, size - 1]
        del other, views

    def actors(self):
        keeper = Keeper.remote([ray.put(self.array(150_000))])
        assert (
            ray.get(
                keeper.keep.remote([ray.put(self.array(150_000)), ones.remote(10)]),
                timeout=TIMEOUT_S,
            )
            == 3
        )
        with contextlib.suppress(KeyError):
            ray.get(keeper.fail.remote(), timeout=TIMEOUT_S)
            raise AssertionError("no error")
        if self.rng.random() < 0.3:
            keeper.leave.remote()
        elif self.rng.random() < 0.5:
            ray.kill(keeper)
        pool = [Keeper.options(max_concurrency=2).remote() for _ in range(2)]
        assert ray.get([one.keep.remote([]) for one in pool], timeout=TIMEOUT_S) == [0, 0]

    def borrowers(self):
        """An actor lends references to another one, which reads them after this process has dropped
        them."""
        first, second = Keeper.remote(), Keeper.remote()
        ray.get(
            first.keep.remote([ray.put(self.array(200_000)) for _ in range(3)]), timeout=TIMEOUT_S
        )
        lent = ray.get(first.lend.remote(), timeout=TIMEOUT_S)
        ray.get(second.keep.remote(lent), timeout=TIMEOUT_S)
        del lent
        if self.rng.random() < 0.5:
            ray.kill(first)
        else:
            ray.get(first.drop.remote(), timeout=TIMEOUT_S)
        assert ray.get(second.read.remote(), timeout=TIMEOUT_S) == 600_000

    def names(self):
        name = f"name-{self.rng.randrange(10)}"
        detached = Keeper.options(name=name, lifetime="detached", get_if_exists=True).remote()
        ray.get(detached.keep.remote([ray.put(self.array(110_000))]), timeout=TIMEOUT_S)
        ray.kill(ray.get_actor(name))
        del detached
        plain = Keeper.options(name=f"plain-{self.rng.random()}").remote()
        assert ray.get(plain.keep.remote([]), timeout=TIMEOUT_S) == 0
        for entry in ray.util.list_named_actors():
            if entry.startswith("left-"):
                ray.kill(ray.get_actor(entry))

    def loops(self):
        loop = Loop.remote()
        assert ray.get([loop.nap.remote(i) for i in range(20)], timeout=TIMEOUT_S) == list(
            range(20)
        )
        late = loop.forever.remote()
        ray.cancel(late)
        with contextlib.suppress(ray.exceptions.TaskCancelledError):
            ray.get(late, timeout=TIMEOUT_S)
            raise AssertionError("no error")

        async def several():
            return await asyncio.gather(*[double.remote(i) for i in range(5)])

        assert asyncio.run(several()) == [0, 2, 4, 6, 8]
        assert double.remote(4).future().result(TIMEOUT_S) == 8

    def cancellations(self):
        value = ray.put(self.array(120_000))
        refs = [sleeps.remote(TIMEOUT_S, value) for _ in range(5)]
        ray.wait(refs, timeout=0.02)
        for i, ref in enumerate(refs):
            ray.cancel(ref, force=i % 2 == 1)
        for ref in refs:
            with contextlib.suppress(
                ray.exceptions.TaskCancelledError, ray.exceptions.WorkerCrashedError
            ):
                ray.get(ref, timeout=TIMEOUT_S)
                raise AssertionError("no error")

    def killed_workers(self):
        """The worker of a task dies while it owns objects and reads a borrowed one."""
        pids = Pids.remote()

        @ray.remote(max_retries=0)
        def tells(pids, array):
            held = ray.put(np.concatenate([array, array]))
            ray.get(pids.tell.remote("victim", os.getpid()))
            time.sleep(TIMEOUT_S)
            return held

        ref = tells.remote(pids, ray.put(self.array(130_000)))
        pid = eventually(
            lambda: ray.get(pids.ask.remote("victim"), timeout=TIMEOUT_S), TIMEOUT_S, every=0.005
        )
        assert pid, "the task did not start"
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ray.exceptions.WorkerCrashedError):
            ray.get(ref, timeout=TIMEOUT_S)
            raise AssertionError("no error")

    def killed_actors(self):
        restarts = self.rng.randrange(2)
        keeper = Keeper.options(max_restarts=restarts, max_task_retries=restarts).remote(
            [ray.put(self.array(150_000))]
        )
        os.kill(ray.get(keeper.pid.remote(), timeout=TIMEOUT_S), signal.SIGKILL)
        with contextlib.suppress(
            ray.exceptions.ActorDiedError, ray.exceptions.ActorUnavailableError
        ):
            assert ray.get(keeper.read.remote(), timeout=TIMEOUT_S) == 150_000

    def keys(self):
        key = b"key-%d" % self.rng.randrange(20)
        internal_kv._internal_kv_put(key, b"x" * 1000, namespace="churn")
        assert internal_kv._internal_kv_get(key, namespace="churn") == b"x" * 1000
        internal_kv._internal_kv_del(key, namespace="churn")

    def options(self):
        """Uses few sets of options again and again, because a process keeps each set until it
        ends."""
        for _ in range(3):
            name = f"call {self.rng.randrange(10)}"
            assert ray.get(
                [
                    double.options(name=name, num_cpus=self.rng.choice((0.5, 1))).remote(i)
                    for i in range(5)
                ],
                timeout=TIMEOUT_S,
            ) == [0, 2, 4, 6, 8]

    def generators(self):
        size = self.rng.choice((1000, 200_000))
        stream = items.remote(5, size)
        for expected in range(self.rng.randrange(5)):
            assert int(ray.get(next(stream), timeout=TIMEOUT_S)[0]) == expected
        self.bytes += 5 * size

    def large(self, count):
        """Moves `count` bytes through the store, a few MB each."""
        end = self.bytes + count
        while self.bytes < end:
            size = self.rng.randrange(1_000_000, 30_000_000)
            refs = [ray.put(self.array(size)), ones.remote(size)]
            self.bytes += size
            assert (
                ray.get(total.remote(refs[0]), timeout=TIMEOUT_S) == size
                and len(ray.get(refs[1], timeout=TIMEOUT_S)) == size
            )

    def driver(self):
        """Starts another driver, which ends well, is killed with work pending, or leaves a detached
        actor."""
        dies = self.rng.random() < 0.4
        text = DRIVER.format(
            size=200_000, detach=self.rng.random() < 0.3, dies=dies, seed=self.rng.randrange(10**9)
        )
        self.bytes += 26 * 200_000
        program = subprocess.Popen(
            [os.sys.executable, "-c", text],
            env={**self.env, "RAY_ADDRESS": self.address},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said = ""
            while "half way" not in said and (line := program.stdout.readline()):
                said += line
            assert "half way" in said, said
            if dies:
                program.kill()
            said += program.stdout.read()
            assert program.wait(TIMEOUT_S) == (-signal.SIGKILL if dies else 0), said
        finally:
            program.kill()
            program.wait()
            program.stdout.close()
        self.done["driver"] = self.done.get("driver", 0) + 1

    @staticmethod
    def forget():
        for entry in ray.util.list_named_actors(all_namespaces=True):
            with contextlib.suppress(ValueError):
                ray.kill(ray.get_actor(entry["name"], namespace=entry["namespace"]))
        gc.collect()
