# dag: actors and their methods are bound and executed.
import ray
from conform import show
from ray.dag import InputNode


@ray.remote
class Counter:
    def __init__(self, start):
        self.n = start

    def add(self, x):
        self.n += x
        return self.n


ray.init(num_cpus=1, include_dashboard=False)
counter = Counter.remote(10)


def handle():
    with InputNode() as given:
        node = counter.add.bind(given)
    return [ray.get(node.execute(1)), ray.get(node.execute(2))]


show("handle", handle)


def made():
    return ray.get(Counter.bind(5).add.bind(2).execute())


show("class", made)
show("options", lambda: ray.get(ray.remote(lambda x: x).options(name="n").bind(1).execute()))
show("missing argument", lambda: ray.get(counter.add.bind().execute()))
