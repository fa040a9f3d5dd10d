# Concurrency groups that do not exist, have wrong types, or are in .options().
import ray
from conform import show


class A:
    @ray.method(concurrency_group="none")
    def m(self):
        return 1


class Plain:
    def m(self):
        return 1


show("undeclared", lambda: ray.remote(concurrency_groups={"io": 1})(A) and "accepted")
show("options", lambda: ray.remote(Plain).options(concurrency_groups={"io": 1}) and "accepted")
show(
    "list",
    lambda: (
        ray.remote(concurrency_groups=[{"name": "io", "max_concurrency": 2}])(Plain) and "accepted"
    ),
)
show("string", lambda: ray.remote(concurrency_groups="io")(Plain) and "accepted")
ray.init(num_cpus=1, include_dashboard=False)
a = ray.remote(concurrency_groups={"io": 1})(Plain).remote()
show("known", lambda: ray.get(a.m.options(concurrency_group="io").remote()))
