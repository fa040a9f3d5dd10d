"""The rounds of stress.py. A generator of random numbers decides what a round asks of a cluster."""

import time

import ray
from stress_tasks import (
    Groups,
    Loop,
    Plain,
    Threads,
    family,
    get_there,
    holds,
    made,
    make,
    make_inside,
    make_items,
    make_once,
    number,
    on_gpu,
    read,
    step,
    whole,
)

MB = 1_000_000
STORES = (84 * MB, 100 * MB, 120 * MB, 240 * MB)
PAGE = 4096
UNITS = tuple(int(size * MB) // PAGE * PAGE for size in (2, 5, 8, 12, 16, 24, 27, 30, 38))
PLENTY = 100
# The start of processes may take so many seconds on a busy machine.
START_S = 60
# A round may take this many times as long as its parts take one after the other.
SLACK = 8


def sizes_of(objects):
    return [(one.k % 251, one.size) for one in objects]


class Node:
    def __init__(self, rng, index):
        self.index = index
        self.name = f"node{index}"
        self.cpus = rng.choice((1, 2, 2, 3))
        self.gpus = rng.choice((0, 1, 2))
        self.slots = rng.choice((1, 2))
        self.store = rng.choice(STORES)

    def options(self):
        resources = {self.name: PLENTY, "slot": self.slots, "seat": PLENTY}
        gpus = {"num_gpus": self.gpus} if self.gpus else {}
        return {
            "cpus": self.cpus,
            "object_store_memory": self.store,
            "resources": resources,
            **gpus,
        }

    def __str__(self):
        return f"{self.cpus} CPUs, {self.gpus} GPUs, {self.slots} slots, {self.store // MB} MB"


class Room:
    """Counts what a round may have in each store. `kept` counts what may be there all at the same
    time: values, and the arguments of tasks that wait or that make something. Beside that there
    must be room for the arguments of the largest of the tasks that depend on nothing else, which
    can run one after the other.

    Values stay where they were put, and a large value does not fit into several small gaps. Hence
    all values of a round that lie in stores have the same size, `unit`.
    """

    def __init__(self, nodes, unit):
        self.nodes, self.unit = nodes, unit
        self.whole = {node: (node.store - MB) // (unit + PAGE) * unit for node in nodes}
        self.kept = {node: 0 for node in nodes}
        self.largest = {node: 0 for node in nodes}

    def left(self, *nodes):
        return min(
            self.whole[node] - self.kept[node] - self.largest[node] for node in nodes or self.nodes
        )

    def left_for_arguments(self, *nodes):
        return min(self.whole[node] - self.kept[node] for node in nodes or self.nodes)

    def keep(self, size, *nodes):
        for node in nodes or self.nodes:
            self.kept[node] += size // self.unit * self.unit

    def pass_through(self, size, *nodes):
        for node in nodes or self.nodes:
            self.largest[node] = max(self.largest[node], size)


class Object:
    def __init__(self, k, size, ref=None):
        self.k, self.size, self.ref = k, size, ref


class Round:
    """One round: several scenes whose steps alternate. A scene is a generator, and between two of
    its yields nothing of another scene runs. seconds, bytes: the sums of what its tasks sleep and
    move."""

    def __init__(self, rng, nodes, rate):
        self.rng, self.nodes, self.rate, self.unit = rng, nodes, rate, rng.choice(UNITS)
        self.room = Room(nodes, self.unit)
        self.head, self.small = nodes[0], min(node.cpus for node in nodes)
        self.seconds, self.bytes, self.next_k = 0.0, 0, 0
        self.played, self.begin = [], time.monotonic()
        # One actor may keep a CPU on whatever node it runs: no task needs more than what is left of
        # a node.
        self.free_for_actor = rng.choice((0, 1)) if self.small > 1 else 0
        self.most_cpus = self.small - self.free_for_actor
        # A forced cancellation ends a process, and with it what the process owns.
        self.forces = rng.random() < 0.4
        self.scenes = (
            self.subsets,
            self.subsets,
            self.anywhere,
            self.chains,
            self.families,
            self.starved,
            self.gpus,
            self.plain_actor,
            self.queued_calls,
            self.groups,
            self.threads,
            self.loop,
            self.once,
            self.streams,
            self.waits,
            self.fetched,
            self.cancelled,
        )

    # ---- what scenes use

    def alone(self):
        """Returns how long all bytes and sleeps of the round take one after the other."""
        return self.seconds + self.bytes / self.rate

    def limit(self):
        return self.begin + START_S + SLACK * self.alone()

    def time_left(self):
        return max(0.1, self.limit() - time.monotonic())

    def get(self, refs):
        return ray.get(refs, timeout=self.time_left())

    def equal(self, refs, expected):
        found = self.get(refs)
        assert found == expected, f"{found} instead of {expected}"

    def pause(self, most, tasks=1):
        seconds = self.rng.choice((0, self.rng.random() * most))
        self.seconds += seconds * tasks
        return seconds

    def k(self, count=1):
        self.next_k += count
        return self.next_k - count + 1

    def cpus(self):
        return self.rng.choice((0.25, 0.5, 1, 1, self.most_cpus))

    def sizes(self, left, most):
        """Chooses sizes of values: often as many as there is room left for, and some that need
        none."""
        wanted = int(left * self.rng.choice((0.2, 0.4, 0.6, 0.8, 1, 1)))
        sizes = [self.unit] * min(most, wanted // self.unit)
        sizes += [self.rng.randrange(1, 50_000) for _ in range(self.rng.choice((0, 0, 1, 2)))]
        self.rng.shuffle(sizes)
        return sizes

    def size(self, left):
        """Returns a size for values that share room: `left` is the room for each of them."""
        return self.unit if self.unit <= left and self.rng.random() < 0.8 else 20_000

    def at(self, node):
        return {"resources": {node.name: 0.01}}

    def objects(self, sizes, node):
        """Makes objects of these sizes in the store of one node, or anywhere. The caller has seen
        to the room for them."""
        found = []
        for size in sizes:
            self.room.keep(size, *([node] if node else []))
            self.bytes += size
            k, options = self.k(), {"num_cpus": self.cpus(), **(self.at(node) if node else {})}
            way = self.rng.choice(("put", "task", "task", "inside"))
            if way == "put" and node in (None, self.head):
                ref = ray.put(made(k, size))
            elif way == "inside" and not self.forces:
                ref = self.get(make_inside.options(**options).remote(k, size))[0]
            else:
                ref = make.options(**options).remote(k, size)
            found.append(Object(k, size, ref))
        return found

    def shuffled(self, objects):
        return self.rng.sample(objects, len(objects))

    def some(self, objects, most):
        """Chooses at random objects that together have at most `most` bytes."""
        left, chosen = most, []
        for one in self.shuffled(objects):
            if one.size <= left:
                chosen.append(one)
                left -= one.size
        return chosen

    def readers(self, objects, count, most, options):
        """Starts tasks that each read some of the objects; returns them with the results that they
        must give."""
        tasks = []
        for _ in range(count):
            chosen = self.some(objects, most)
            self.bytes += sum(one.size for one in chosen)
            reader = read.options(num_cpus=self.cpus(), **options)
            ref = reader.remote(self.pause(0.1), *[one.ref for one in chosen])
            tasks.append((ref, sizes_of(chosen)))
        return tasks

    def check(self, tasks):
        self.equal([ref for ref, _ in tasks], [expected for _, expected in tasks])

    # ---- scenes

    def subsets(self):
        """Tasks on one node have arguments on another one that together nearly fill its store."""
        source, target = self.rng.choice(self.nodes), self.rng.choice(self.nodes)
        objects = self.objects(self.sizes(self.room.left(source), 10), source)
        yield
        most = self.room.left_for_arguments(target)
        if source is not target:
            self.room.pass_through(most, target)
        tasks = self.readers(objects, self.rng.randrange(2, 10), most, self.at(target))
        yield
        self.check(tasks)

    def anywhere(self):
        """The scheduler chooses the nodes of the tasks."""
        source = self.rng.choice(self.nodes)
        objects = self.objects(self.sizes(self.room.left(source), 8), source)
        yield
        most = self.room.left_for_arguments()
        self.room.pass_through(most)
        options = self.rng.choice(({}, {"scheduling_strategy": "SPREAD"}))
        tasks = self.readers(objects, self.rng.randrange(2, 10), most, options)
        yield
        self.check(tasks)

    def chains(self):
        """A value goes from node to node; each value is made from the one before."""
        length = self.rng.randrange(2, 8)
        size = self.size(self.room.left() // (length + 1))
        self.room.keep(size * (length + 1))
        self.bytes += 2 * size * length
        ref = make.remote(0, size)
        for k in range(1, length + 1):
            node = self.rng.choice(self.nodes)
            ref = step.options(num_cpus=self.cpus(), **self.at(node)).remote(k, ref)
        yield
        self.equal(read.remote(0, ref), [(length, size)])

    def families(self):
        objects = self.objects(self.sizes(self.room.left(), 3), None)
        depth, width = self.rng.randrange(1, 4), self.rng.randrange(1, 3)
        options = [{"num_cpus": self.cpus()} for _ in range(depth + 1)]
        if self.rng.random() < 0.3:
            options[depth]["resources"] = {"slot": 1}
        if self.rng.random() < 0.3:
            options[0]["scheduling_strategy"] = "SPREAD"
        tasks = sum(width**level for level in range(depth + 1))
        roots = self.rng.randrange(1, 3)
        seconds = self.pause(0.1, tasks * roots)
        refs = [one.ref for one in objects]
        self.bytes += len(self.nodes) * sum(one.size for one in objects)
        trees = [
            family.options(**options[depth]).remote(depth, width, options, seconds, refs, *refs)
            for _ in range(roots)
        ]
        yield
        self.equal(trees, [(tasks, sizes_of(objects))] * roots)

    def starved(self):
        """Every slot is held by a task that gets a child. Other tasks wait for a slot for more than
        a second and want CPUs as well, as does a crowd of small tasks."""
        slots = sum(node.slots for node in self.nodes)
        polls = self.rng.random() < 0.3
        seconds = self.rng.choice((0.2, 1.2, 1.5))
        holders = [
            holds.options(num_cpus=0 if polls else self.cpus(), resources={"slot": 1}).remote(
                x, seconds, {"num_cpus": self.cpus()}, polls
            )
            for x in range(slots)
        ]
        self.seconds += 2 * seconds
        yield
        wanting = [
            number.options(num_cpus=self.cpus(), resources={"slot": 1}).remote(x, self.pause(0.2))
            for x in range(self.rng.randrange(1, 4))
        ]
        crowd = [
            number.options(num_cpus=self.cpus()).remote(x, self.pause(0.1))
            for x in range(self.rng.randrange(0, 20))
        ]
        yield
        self.equal(wanting, list(range(len(wanting))))
        self.equal(holders + crowd, [*range(slots), *range(len(crowd))])

    def gpus(self):
        most = max(node.gpus for node in self.nodes)
        if not most:
            return
        tasks = []
        for x in range(self.rng.randrange(2, 8)):
            wanted = self.rng.choice((0.25, 0.5, 1, most))
            child = self.rng.choice((None, {"num_cpus": self.cpus()}))
            tasks.append(
                on_gpu.options(num_cpus=self.rng.choice((0, 0.5, 1)), num_gpus=wanted).remote(
                    x, child
                )
            )
        yield
        self.equal(tasks, list(range(len(tasks))))

    def plain_actor(self):
        objects = self.objects(self.sizes(self.room.left(), 4), None)
        self.bytes += 2 * sum(one.size for one in objects)
        cpus, self.free_for_actor = self.free_for_actor, 0
        actor = Plain.options(num_cpus=cpus, resources={"seat": 1.5}).remote(
            self.rng.random() < 0.5, *[one.ref for one in objects]
        )
        first = actor.first.remote()
        yield
        calls = []
        for _ in range(self.rng.randrange(1, 6)):
            chosen = self.rng.sample(objects, self.rng.randrange(len(objects) + 1))
            calls.append((actor.read.remote(*[one.ref for one in chosen]), sizes_of(chosen)))
        child = actor.child.remote(7, {"num_cpus": self.cpus()})
        yield
        self.equal([first, child], [sizes_of(objects), 7])
        self.check(calls)

    def queued_calls(self):
        """Calls wait for their turn with arguments while the running call gets its child's
        result."""
        source, target = self.rng.choice(self.nodes), self.rng.choice(self.nodes)
        objects = self.objects(self.sizes(self.room.left(source), 6), source)
        yield
        left = self.room.left_for_arguments(target)
        own = self.some(objects, left // 2)
        inner = self.some(objects, left - sum(one.size for one in own))
        if source is not target:
            self.room.keep(sum(one.size for one in own + inner), target)
        count = self.rng.randrange(2, 6)
        self.bytes += count * sum(one.size for one in own + inner)
        actor = Plain.options(num_cpus=0, **self.at(target)).remote(False)
        refs, options = [one.ref for one in inner], {"num_cpus": self.cpus(), **self.at(target)}
        calls = [
            actor.child_reads.remote(options, refs, *[one.ref for one in self.shuffled(own)])
            for _ in range(count)
        ]
        yield
        expected = sizes_of(inner)
        self.equal(calls, [(expected, sum(one.size for one in own))] * count)

    def groups(self):
        objects = self.objects(self.sizes(self.room.left(), 3), None)
        refs = [one.ref for one in objects]
        self.bytes += sum(one.size for one in objects)
        actor = Groups.options(num_cpus=0).remote()
        keys = range(self.rng.randrange(1, 6))
        waits = [actor.wait.remote(key // 2, *refs) for key in keys]
        other = actor.other.remote(3)
        yield
        sets = [actor.set.remote(key // 2, *refs) for key in keys]
        yield
        self.equal(waits + sets, [sizes_of(objects)] * 2 * len(keys))
        self.equal(other, 3)

    def threads(self):
        count = self.rng.randrange(2, 5)
        objects = self.objects(self.sizes(self.room.left(), 4), None)
        self.bytes += sum(one.size for one in objects)
        actor = Threads.options(num_cpus=0, max_concurrency=count).remote(count)
        yield
        calls = []
        for _ in range(count * self.rng.randrange(1, 3)):
            chosen = self.rng.sample(objects, self.rng.randrange(len(objects) + 1))
            calls.append((actor.meet.remote(*[one.ref for one in chosen]), sizes_of(chosen)))
        yield
        self.check(calls)

    def loop(self):
        objects = self.objects(self.sizes(self.room.left(), 3), None)
        size = self.size(self.room.left() // 5)
        self.room.keep(5 * size)
        self.bytes += 2 * sum(one.size for one in objects) + 5 * size
        refs = [one.ref for one in objects]
        actor = Loop.options(num_cpus=0, resources={"seat": 0.5}).remote(*refs)
        keys = range(self.rng.randrange(1, 20))
        waits = [actor.wait.remote(key, *self.rng.choice((refs, []))) for key in keys]
        first = self.k(5)
        items = actor.items.remote(first, 5, size)
        yield
        family = actor.children.remote(3, {"num_cpus": self.cpus()})
        sets = [actor.set.remote(key, *refs) for key in keys]
        yield
        found = self.get(waits)
        assert all(one in (sizes_of(objects), []) for one in found), found
        self.equal([*sets, family], [sizes_of(objects)] * len(keys) + [3])
        self.equal(actor.first.remote(), sizes_of(objects))
        seen = [whole(array) for array in self.get(list(items))]
        assert seen == [(k % 251, size) for k in range(first, first + 5)], seen

    def once(self):
        """The process that ran a function of one call lives on for the objects that it put."""
        sizes = self.sizes(self.room.left(), 4)
        self.room.keep(sum(sizes))
        self.bytes += 2 * sum(sizes)
        ks = [self.k() for _ in sizes]
        calls = [
            make_once.options(num_cpus=self.cpus()).remote(k, size) for k, size in zip(ks, sizes)
        ]
        yield
        inside = [refs[0] for refs in self.get(calls)]
        del calls
        yield
        node = self.rng.choice(self.nodes)
        expected = [(k % 251, size) for k, size in zip(ks, sizes)]
        there = get_there.options(num_cpus=self.cpus(), **self.at(node)).remote(inside)
        self.equal([read.remote(0, *inside), there], [expected] * 2)

    def streams(self):
        count = self.rng.randrange(1, 6)
        size = self.size(self.room.left() // count)
        self.room.keep(count * size)
        self.bytes += 2 * count * size
        first = self.k(count)
        limit = self.rng.choice((-1, 1, 2))
        stream = make_items.options(
            num_cpus=self.cpus(),
            num_returns="streaming",
            _generator_backpressure_num_objects=limit,
        )
        items, tasks = stream.remote(first, count, size), []
        yield
        for k in range(first, first + count):
            ref = next(items)
            tasks.append((read.options(num_cpus=self.cpus()).remote(0, ref), [(k % 251, size)]))
            del ref
            if self.rng.random() < 0.5:
                yield
        assert next(items, None) is None
        self.check(tasks)

    def waits(self):
        count = self.rng.randrange(2, 30)
        left = {
            number.options(num_cpus=self.cpus()).remote(x, self.pause(0.1)): x for x in range(count)
        }
        yield
        seen = []
        while left:
            wanted = self.rng.randrange(1, len(left) + 1)
            ready, _ = ray.wait(list(left), num_returns=wanted, timeout=self.time_left())
            assert len(ready) == wanted, f"{len(ready)} of {wanted} are ready in time"
            self.equal(ready, [left[ref] for ref in ready])
            seen += [left.pop(ref) for ref in ready]
            del ready
            if self.rng.random() < 0.3:
                yield
        assert sorted(seen) == list(range(count)), seen

    def fetched(self):
        """The driver's process reads values of other nodes, too."""
        source = self.rng.choice(self.nodes)
        most = min(self.room.left(source), self.room.left(self.head))
        objects = self.objects(self.sizes(most, 4), source)
        if source is not self.head:
            self.room.keep(sum(one.size for one in objects), self.head)
        self.bytes += sum(one.size for one in objects)
        yield
        values = self.get([one.ref for one in objects])
        yield
        assert [whole(value) for value in values] == sizes_of(objects)

    def cancelled(self):
        """Cancels tasks that are queued, wait for room for their arguments, run, or are parents."""
        source, target = self.rng.choice(self.nodes), self.rng.choice(self.nodes)
        objects = self.objects(self.sizes(self.room.left(source), 6), source)
        yield
        most = self.room.left_for_arguments(target)
        if source is not target:
            self.room.pass_through(most, target)
        tasks = self.readers(objects, self.rng.randrange(2, 8), most, self.at(target))
        tasks += [
            (holds.options(num_cpus=0.5).remote(x, self.pause(0.4), {"num_cpus": 1}, False), x)
            for x in range(self.rng.randrange(3))
        ]
        if self.rng.random() < 0.7:
            yield
        chosen = self.rng.sample(tasks, self.rng.randrange(len(tasks) + 1))
        for ref, _ in chosen:
            ray.cancel(ref, force=self.forces and self.rng.random() < 0.5)
        yield
        for ref, expected in tasks:
            try:
                self.equal(ref, expected)
            except ray.exceptions.TaskCancelledError:
                if ref not in [one for one, _ in chosen]:
                    raise

    # ---- the round

    def play(self):
        playing = []

        def advance(scene):
            try:
                next(scene)
            except StopIteration:
                playing.remove(scene)

        for scene in self.rng.choices(self.scenes, k=self.rng.randrange(3, 9)):
            self.played.append(scene.__name__)
            playing.append(scene())
            advance(playing[-1])
        while playing:
            advance(self.rng.choice(playing))
