# Dataclasses, classes with __new__ and abstract or generic bases can be actors.
import abc
import dataclasses
import typing
import ray
from conform import show

T = typing.TypeVar("T")


@ray.remote
@dataclasses.dataclass
class Data:
    x: int
    y: int = 2

    def both(self):
        return self.x, self.y


class Base(abc.ABC):
    @abc.abstractmethod
    def m(self): ...


@ray.remote
class Concrete(Base):
    def m(self):
        return "concrete"


class Abstract(Base):
    def other(self):
        return 1


@ray.remote
class Box(typing.Generic[T]):
    def __init__(self, x: T):
        self.x = x

    def read(self) -> T:
        return self.x


ray.init(num_cpus=1, include_dashboard=False)
show("data", lambda: ray.get(Data.remote(1).both.remote()))
show("concrete", lambda: ray.get(Concrete.remote().m.remote()))
show("abstract", lambda: ray.get(ray.remote(Abstract).remote().other.remote(), timeout=120))
show("generic", lambda: ray.get(Box.remote("g").read.remote()))
