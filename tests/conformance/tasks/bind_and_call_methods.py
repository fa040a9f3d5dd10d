# Static methods, class methods and bound methods can be remote functions.
import ray
from conform import show


class Tool:
    factor = 3

    @staticmethod
    def static(x):
        return x + 1

    @classmethod
    def of_class(cls, x):
        return x * cls.factor

    def bound(self, x):
        return x - 1


ray.init(num_cpus=1, include_dashboard=False)
show("static", lambda: ray.get(ray.remote(Tool.static).remote(1)))
show("class", lambda: ray.get(ray.remote(Tool.of_class).remote(2)))
show("bound", lambda: ray.get(ray.remote(Tool().bound).remote(2)))
show("unbound", lambda: ray.get(ray.remote(Tool.bound).remote(Tool(), 2)))
