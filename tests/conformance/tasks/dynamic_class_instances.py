# Instances of classes of __main__ can be arguments and results.
import collections
import dataclasses
import enum
import ray

Point = collections.namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Box:
    inside: object


class Plain:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return isinstance(other, Plain) and other.n == self.n


ray.init(num_cpus=1, include_dashboard=False)
echo = ray.remote(lambda x: x)
print(ray.get(echo.remote(Point(1, 2))), ray.get(echo.remote(Box([Colour.RED]))))
print(
    ray.get(echo.remote(Colour.RED)) is Colour.RED,
    ray.get(echo.remote(Plain(3))) == Plain(3),
    type(ray.get(echo.remote(Plain(3)))) is Plain,
)
