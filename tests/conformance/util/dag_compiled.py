# dag: a compiled graph of one actor.
import ray
from conform import show
from ray.dag import InputNode


@ray.remote
class Echo:
    def echo(self, x):
        return x + 1

    def bad(self, x):
        raise ValueError("in graph")


ray.init(num_cpus=1, include_dashboard=False)
a = Echo.remote()


def compiled():
    with InputNode() as given:
        node = a.echo.bind(given)
    graph = node.experimental_compile()
    values = [ray.get(graph.execute(i)) for i in range(3)]
    graph.teardown()
    return values


show("values", compiled)


def failing():
    with InputNode() as given:
        node = a.bad.bind(given)
    graph = node.experimental_compile()
    try:
        return ray.get(graph.execute(1))
    finally:
        graph.teardown()


show("error", failing)
