# Plain classes can be base classes of actors, actor classes cannot.
import ray
from conform import show


class Base:
    def __init__(self, x):
        self.x = x

    def base(self):
        return "base", self.x

    def both(self):
        return "base"


@ray.remote
class A(Base):
    def __init__(self, x):
        super().__init__(x + 1)

    def both(self):
        return "derived of " + super().both()


def derive():
    class B(A):
        pass


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote(1)
print(ray.get([a.base.remote(), a.both.remote()]))
show("derive", derive)
try:
    derive()
except Exception as error:
    print(type(error).__name__, "inherit" in str(error))
