# A method call takes the options num_returns and name and refuses unknown ones.
import ray
from conform import show


@ray.remote
class A:
    def pair(self):
        return 1, 2

    def name(self):
        return ray.get_runtime_context().get_task_name()


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("one", lambda: ray.get(a.pair.remote()))
show("two", lambda: ray.get(a.pair.options(num_returns=2).remote()))
show("zero", lambda: a.pair.options(num_returns=0).remote())
show("name", lambda: ray.get(a.name.remote()))
show("own name", lambda: ray.get(a.name.options(name="mine").remote()))
show("unknown", lambda: a.pair.options(colour=1).remote() and "accepted")
show("num_cpus", lambda: a.pair.options(num_cpus=1).remote() and "accepted")
