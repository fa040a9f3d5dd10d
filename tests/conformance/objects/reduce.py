# Values with __reduce__, __getstate__, __slots__ or copyreg travel.
import copyreg
import ray


class Reduced:
    def __init__(self, x):
        self.x = x

    def __reduce__(self):
        return Reduced, (self.x + 1,)


class State:
    def __init__(self):
        self.kept, self.dropped = 1, 2

    def __getstate__(self):
        return {"kept": self.kept}


class Slots:
    __slots__ = ("a", "b")


ray.init(num_cpus=1, include_dashboard=False)
slots = Slots()
slots.a = 5
back = ray.get(ray.put(slots))
print(ray.get(ray.put(Reduced(1))).x, vars(ray.get(ray.put(State()))), back.a, hasattr(back, "b"))
