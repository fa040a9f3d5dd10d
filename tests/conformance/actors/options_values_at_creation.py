# Some option values are refused only by .remote().
import ray
from conform import show


class A:
    def m(self):
        return 1


class Async:
    async def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
show("get_if_exists without name", lambda: ray.remote(A).options(get_if_exists=True).remote())
show("empty name", lambda: ray.remote(A).options(name="").remote())
show("name of wrong type", lambda: ray.remote(A).options(name=3).remote())
show("empty namespace", lambda: ray.remote(A).options(name="a", namespace="").remote())
show(
    "in order and threads",
    lambda: ray.remote(A).options(max_concurrency=2, allow_out_of_order_execution=False).remote(),
)
show(
    "in order and async",
    lambda: ray.remote(Async).options(allow_out_of_order_execution=False).remote(),
)
show("lifetime", lambda: ray.remote(A).options(lifetime="forever").remote())
