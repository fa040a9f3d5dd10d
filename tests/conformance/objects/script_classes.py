# Instances of classes that the script defines travel into tasks and back.
import dataclasses
import enum
from typing import ClassVar, Generic, List, NamedTuple, TypedDict, TypeVar
import ray
from conform import show

T = TypeVar("T")


@dataclasses.dataclass
class Plain:
    x: int
    y: List[int] = dataclasses.field(default_factory=list)
    z: ClassVar[int] = 3


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: str = "q"


@dataclasses.dataclass(kw_only=True)
class Derived(Plain):
    more: "int | None" = None


class Point(NamedTuple):
    x: int
    y: str = "d"

    def both(self):
        return self.x, self.y


class Fields(TypedDict):
    a: int


class Colour(enum.Enum):
    RED = 1


class Box(Generic[T]):
    def __init__(self, value: T):
        self.value = value


@ray.remote
def of_dataclass(value):
    return (
        [f.name for f in dataclasses.fields(value)],
        dataclasses.asdict(value),
        type(value) in (Plain, Frozen, Derived),
    )


@ray.remote
def made():
    return (
        Plain(1),
        dataclasses.replace(Derived(x=1), more=2),
        Frozen(1),
        Point(1),
        Fields(a=1),
        Colour.RED,
        Box(4),
    )


@ray.remote
def of_tuple(value):
    return (
        value.both(),
        value._fields,
        value._asdict(),
        value._replace(x=9),
        isinstance(value, Point),
    )


@ray.remote
def of_classes():
    return (
        sorted(Fields.__required_keys__),
        sorted(Fields.__optional_keys__),
        Point._field_defaults,
        [f.name for f in dataclasses.fields(Plain)],
    )


ray.init(num_cpus=1, include_dashboard=False)
for value in (Plain(1), Frozen(2), Derived(x=3, more=4)):
    show(type(value).__name__, lambda: ray.get(of_dataclass.remote(value)))
show("tuple", lambda: ray.get(of_tuple.remote(Point(3))))
show("classes", lambda: ray.get(of_classes.remote()))
back = ray.get(made.remote())
show(
    "back",
    lambda: (
        back[0] == Plain(1),
        back[1],
        back[2] < Frozen(2),
        back[3] == Point(1),
        back[4],
        back[5] is Colour.RED,
        back[6].value,
    ),
)
show(
    "same classes",
    lambda: [type(value) in (Plain, Frozen, Derived, Point, dict, Colour, Box) for value in back],
)
show("fields", lambda: [[f.name for f in dataclasses.fields(value)] for value in back[:3]])
