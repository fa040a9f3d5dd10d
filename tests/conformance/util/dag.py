# dag: functions are bound and executed.
import ray
from conform import show
from ray.dag import InputNode, MultiOutputNode


@ray.remote
def add(x, y):
    return x + y


ray.init(num_cpus=1, include_dashboard=False)
show("constants", lambda: ray.get(add.bind(1, 2).execute()))
show("nested", lambda: ray.get(add.bind(add.bind(1, 2), add.bind(3, y=4)).execute()))


def with_input():
    with InputNode() as given:
        node = add.bind(given, 10)
    return ray.get(node.execute(5))


show("input", with_input)


def parts():
    with InputNode() as given:
        node = add.bind(given[0], given.key)
    return ray.get(node.execute(1, key=2))


show("input parts", parts)


def several():
    with InputNode() as given:
        node = MultiOutputNode([add.bind(given, 1), add.bind(given, 2)])
    return ray.get(node.execute(5))


show("several", several)
show("type", lambda: type(add.bind(1, 2)).__name__)
