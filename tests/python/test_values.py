"""Values travel unharmed: arrays of every layout, tensors, Arrow tables, cycles, custom
serializers. Also how long views live."""

import collections
import dataclasses
import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import ray
from ray import cloudpickle

pytestmark = pytest.mark.usefixtures("cluster")

# The numbers of elements of 8 bytes: small arrays travel in messages, large ones in shared memory.
SMALL, LARGE = 10, 60_000


@ray.remote
def echo(value):
    return value


@ray.remote
def facts(array):
    """Describes an array as a task sees it."""
    return (
        array.dtype,
        array.shape,
        array.flags.writeable,
        array.flags.c_contiguous,
        array.flags.f_contiguous,
        array.tolist() if array.size < 1000 else None,
    )


def ways(value):
    """Yields the value as get returns it after a put, from a task, and inside other values."""
    yield ray.get(ray.put(value))
    yield ray.get(echo.remote(value))
    yield ray.get(echo.remote(ray.put(value)))
    yield ray.get(ray.put({"in": [value]}))["in"][0]


STRUCT = np.dtype([("name", "U5"), ("at", "f8", (2,)), ("n", "i4")])
ARRAYS = {
    "0-d": np.array(3.5),
    "0-d text": np.array("text"),
    "empty": np.zeros(0),
    "empty in one dimension": np.zeros((3, 0, 2)),
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "strided": np.arange(20)[::3],
    "reversed": np.arange(20)[::-1],
    "columns": np.arange(24).reshape(4, 6)[:, 1::2],
    "transposed": np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
    "broadcast": np.broadcast_to(np.arange(3), (4, 3)),
    "structured": np.array([("a", (1, 2), 3), ("b", (4, 5), 6)], dtype=STRUCT),
    "big endian": np.arange(5, dtype=">i4"),
    "bool": np.array([True, False]),
    "complex": np.array([1 + 2j]),
    "half": np.arange(4, dtype=np.float16),
    "dates": np.array(["2026-11-21", "NaT"], dtype="datetime64[D]"),
    "durations": np.array([1, 2], dtype="timedelta64[ms]"),
    "text": np.array(["a", "bcd"]),
    "bytes": np.array([b"a", b"bcd"]),
    "void": np.array([b"ab", b"cd"], dtype="V2"),
    "objects": np.array([1, "two", None, [3]], dtype=object),
    "0-d object": np.array({"a": 1}, dtype=object),
    "record": np.rec.array([(1, 2.0)], dtype=[("x", int), ("y", float)]),
    "masked": np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    "matrix": np.asmatrix([[1, 2], [3, 4]]),
}


def has_one_size(name):
    return name.startswith("0-d") or not ARRAYS[name].size


@pytest.mark.parametrize(
    "name, repeat",
    [
        pytest.param(name, repeat, id=f"{size}-{name}")
        for size, repeat in (("small", 1), ("large", LARGE))
        for name in ARRAYS
        if repeat == 1 or not has_one_size(name)
    ],
)
def test_arrays(name, repeat):
    array = ARRAYS[name]
    if repeat > 1:
        array = (
            np.repeat(array, repeat // array.size + 1, axis=0)
            if name != "fortran"
            else np.asfortranarray(np.repeat(array, repeat, axis=0))
        )
    for got in ways(array):
        assert type(got) is type(array) and got.dtype == array.dtype and got.shape == array.shape
        assert (got.flags.f_contiguous, got.flags.c_contiguous) == (
            array.flags.f_contiguous,
            array.flags.c_contiguous,
        ) or not (array.flags.c_contiguous or array.flags.f_contiguous)
        assert pickle.dumps(got.tolist()) == pickle.dumps(array.tolist())


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_arrays_cannot_be_written_to(size):
    """Arrays are read-only, small ones as well, though these are copies. A copy of an array can be
    written to."""
    array = np.arange(size)
    for got in ways(array):
        assert not got.flags.writeable
        with pytest.raises(ValueError):
            got[0] = 1
        mine = got.copy()
        mine[0] = 1
    assert ray.get(facts.remote(array))[2] is False
    assert array.flags.writeable and array[0] == 0


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_bytearrays_and_buffers(size):
    for value in (bytes(8 * size), bytearray(b"ab" * 4 * size)):
        for got in ways(value):
            assert type(got) is type(value) and got == value
    grown = ray.get(ray.put(bytearray(8 * size)))
    grown.append(1)
    got = pickle.PickleBuffer(ray.get(ray.put(np.arange(size)))).raw()
    assert got.readonly and got.nbytes == 8 * size


def test_views_outlive_what_they_came_from():
    """Slices, memoryviews, views of other types, and arrays in objects and closures are dropped in
    any order."""

    def values():
        whole = ray.get(ray.put(np.arange(LARGE)))
        yield whole[::7], np.arange(LARGE)[::7]
        yield whole.view(np.uint8)[:80], np.arange(10).view(np.uint8)
        yield memoryview(whole)[100:200], memoryview(np.arange(100, 200))
        yield whole.reshape(2, -1)[1], np.arange(LARGE // 2, LARGE)
        held = ray.get(ray.put({"a": np.arange(LARGE), "b": [np.ones(LARGE)]}))
        yield held["a"], np.arange(LARGE)
        yield held["b"][0], np.ones(LARGE)

    kept = list(values())
    gc.collect()
    # These would be stored where the dropped ones were.
    for _ in range(20):
        ray.get(ray.put(np.full(LARGE, 77.0)))
    for got, expected in kept:
        assert (np.asarray(got) == np.asarray(expected)).all()

    shared = ray.get(ray.put(np.arange(LARGE)))
    closed = ray.remote(lambda: int(shared.sum()))
    del kept
    gc.collect()
    assert ray.get(closed.remote()) == int(np.arange(LARGE).sum())


def test_views_are_dropped_in_other_threads():
    views = [ray.get(ray.put(np.full(LARGE, i))) for i in range(8)]
    threads = [threading.Thread(target=lambda: [views.pop() for _ in range(2)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not views and int(ray.get(ray.put(np.ones(LARGE))).sum()) == LARGE


def test_an_actor_keeps_views_of_its_arguments():
    @ray.remote
    class Keeper:
        def keep(self, array):
            self.part = array[5:10]

        def read(self):
            return self.part.tolist()

    keeper = Keeper.remote()
    ray.get(keeper.keep.remote(np.arange(LARGE)))
    for _ in range(10):
        ray.get(ray.put(np.zeros(LARGE)))
    assert ray.get(keeper.read.remote()) == [5, 6, 7, 8, 9]


def test_many_buffers_in_one_object():
    value = {i: np.full(i % 50, i) for i in range(2000)} | {
        "large": [np.full(LARGE, i) for i in range(5)]
    }
    for got in ways(value):
        assert all((got[i] == value[i]).all() and len(got[i]) == i % 50 for i in range(2000))
        assert [int(part[-1]) for part in got["large"]] == [0, 1, 2, 3, 4]


def test_one_array_in_many_places_stays_one():
    array = np.arange(LARGE)
    got = ray.get(ray.put([array, array, {"again": array}]))
    assert got[0] is got[1] and got[2]["again"] is got[0]


class Node:
    def __init__(self):
        self.me, self.array, self.others = self, np.arange(LARGE), []


def test_cycles():
    node = Node()
    node.others.append(node.others)
    table = {"node": node}
    table["table"] = table
    for got in ways(table):
        assert (
            got["table"] is got
            and got["node"].me is got["node"]
            and got["node"].others[0] is got["node"].others
        )
        assert (got["node"].array == node.array).all()


def nested(kind, levels):
    value = "core"
    for _ in range(levels):
        value = [value] if kind is list else {"in": value}
    return value


def levels_of(value):
    levels = 0
    while isinstance(value, (list, dict)):
        value = value[0] if isinstance(value, list) else value["in"]
        levels += 1
    return levels


@pytest.mark.parametrize("levels", [500, 1000])
@pytest.mark.parametrize("kind", [list, dict])
def test_lists_and_dicts_nest_as_deep_as_the_recursion_limit(kind, levels):
    @ray.remote
    def make():
        return nested(kind, levels)

    @ray.remote
    def fail():
        raise ValueError(nested(kind, levels))

    @ray.remote
    def inside():
        return Point(nested(kind, levels), 0)

    assert ray.get(ray.remote(levels_of).remote(nested(kind, levels))) == levels
    assert levels_of(ray.get(ray.put(nested(kind, levels)))) == levels
    assert levels_of(ray.get(make.remote())) == levels
    assert levels_of(ray.get(inside.remote()).x) == levels
    with pytest.raises(ValueError) as error:
        ray.get(fail.remote())
    assert levels_of(error.value.cause.args[0]) == levels
    assert sys.getrecursionlimit() == 1000


def test_deep_values():
    deep = value = []
    for _ in range(200):
        deep.append([])
        deep = deep[0]
    assert ray.get(echo.remote(value)) == value
    for _ in range(100_000):
        deep.append([])
        deep = deep[0]
    for use in (ray.put, echo.remote):
        with pytest.raises(
            pickle.PicklingError, match="raise the limit with sys.setrecursionlimit"
        ):
            use(value)
    while value:
        value = value[0]
    assert ray.get(ray.put(1)) == 1


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int
    b: np.ndarray = dataclasses.field(compare=False)


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __eq__(self, other):
        return (self.a, self.b) == (other.a, other.b)


@pytest.mark.parametrize(
    "value",
    [
        Point(1, [2]),
        Frozen(1, np.ones(3)),
        Slots(1, "b"),
        {Point(1, 2): {3, 4}},
        collections.OrderedDict(b=1, a=2),
        collections.deque([1], 5),
        range(5),
        slice(1, 2),
        frozenset({1}),
        2**200,
        float("inf"),
        1j,
        "\ud800",
        ...,
        NotImplemented,
        int,
        Point,
        len,
    ],
    ids=lambda v: type(v).__name__,
)
def test_ordinary_objects(value):
    for got in ways(value):
        assert type(got) is type(value) and got == value


def test_custom_serializers():
    class Locked:
        def __init__(self, n):
            self.n, self.lock = n, threading.Lock()

    with pytest.raises(TypeError):
        ray.put(Locked(1))
    ray.util.register_serializer(
        Locked,
        serializer=lambda one: (one.n, np.full(LARGE, one.n)),
        deserializer=lambda state: Locked(state[0]),
    )
    try:
        assert ray.get(ray.put(Locked(5))).n == ray.get(ray.put([Locked(5)]))[0].n == 5
        assert ray.get(ray.remote(lambda one: one.n).remote(Locked(5))) == 5
        assert cloudpickle.loads(cloudpickle.dumps(Locked(6))).n == 6
    finally:
        ray.util.deregister_serializer(Locked)
    with pytest.raises(TypeError):
        ray.put(Locked(1))


def test_reduce_with_references_and_buffers():
    class Custom:
        def __init__(self, ref, array):
            self.ref, self.array = ref, array

        def __reduce_ex__(self, protocol):
            return Custom, (self.ref, self.array)

    for got in ways(Custom(ray.put(np.ones(LARGE)), np.arange(LARGE))):
        assert int(ray.get(got.ref).sum()) == LARGE and int(got.array[-1]) == LARGE - 1


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_tensors(size):
    torch = pytest.importorskip("torch")

    @ray.remote
    def double(tensor):
        assert type(tensor) is torch.Tensor
        return 2 * tensor

    tensor = torch.arange(size, dtype=torch.float64)
    for value in (
        tensor,
        tensor[::3],
        tensor.reshape(2, -1).t(),
        tensor.to(torch.bfloat16),
        torch.tensor(3),
        torch.zeros(0, 3),
        tensor > 5,
    ):
        for got in ways(value):
            assert got.dtype == value.dtype and got.shape == value.shape and torch.equal(got, value)
    assert torch.equal(ray.get(double.remote(tensor)), 2 * tensor)
    changed = ray.get(ray.put(tensor))
    # A received tensor may be written to.
    changed += 1
    assert torch.equal(changed, tensor + 1)
    layer = torch.nn.Linear(3, 2)
    got = ray.get(echo.remote(layer))
    assert torch.equal(got.weight, layer.weight) and got.weight.requires_grad
    assert torch.equal(ray.get(echo.remote(layer.state_dict()))["bias"], layer.bias)
    as_array = ray.get(ray.put(tensor.numpy()))
    assert torch.equal(torch.from_numpy(as_array.copy()), tensor)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_arrow(size):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {
            "n": range(size),
            "text": [str(i) for i in range(size)],
            "list": [[i, None] for i in range(size)],
        }
    )
    for value in (
        table,
        table.slice(2, 5),
        table.to_batches()[0],
        table["n"],
        pa.array([1, None, 3]),
        table.schema,
    ):
        for got in ways(value):
            assert got.equals(value)
    column = ray.get(ray.put(table))["n"]
    for _ in range(5):
        ray.get(ray.put(np.zeros(LARGE)))
    assert column.to_pylist() == list(range(size))


MAIN_CLASSES = """
import pickle, sys
import ray
ray.init(num_cpus=1, log_to_driver=False)

class Base:
    def __eq__(self, other): return type(self) is type(other)
class Sub(Base): pass
class LibError(Exception): pass
class NotFound(LibError): pass
class Mixin: pass
class Both(Mixin, Base): pass

@ray.remote
def make(cls, *args):
    assert cls.__module__ == "__main__", cls.__module__
    assert all(base.__module__ != "types" for base in cls.__mro__), cls.__mro__
    return cls(*args)
@ray.remote
def fail():
    raise NotFound("it")

for cls in (Sub, Both):
    made = ray.get(make.remote(cls))
    assert type(made) is cls and cls.__module__ == "__main__", cls
    assert pickle.loads(pickle.dumps(made)) == made
    assert type(ray.get(ray.put(made))) is cls and cls.__module__ == "__main__"
try:
    ray.get(fail.remote())
except NotFound as error:
    assert "types." not in str(error), str(error)
    assert type(error.cause) is NotFound
    pickle.dumps(error.cause)
else:
    sys.exit("no error")
assert NotFound.__module__ == "__main__", NotFound
# Pickling by hand keeps the class as well.
from ray import cloudpickle
assert cloudpickle.loads(cloudpickle.dumps(Sub)) is Sub and Sub.__module__ == "__main__"
print("the same")
"""


def last_line_of(tmp_path, text):
    """Returns the value that a script prints at its end, or all of its output if that is not a
    line."""
    program = tmp_path / "program.py"
    program.write_text(text)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    return (
        done.stdout.split("\n")[-2]
        if done.stdout.endswith("\n") and done.returncode == 0
        else done.stdout + done.stderr
    )


def test_classes_of_main_keep_their_module(tmp_path):
    assert last_line_of(tmp_path, MAIN_CLASSES) == "the same"


TYPED_CLASSES = """
import dataclasses, typing
import ray

@dataclasses.dataclass
class Plain:
    x: int
    y: list = dataclasses.field(default_factory=list)
    z: typing.ClassVar[int] = 3

@dataclasses.dataclass(slots=True, frozen=True)
class Slotted:
    a: int

class Point(typing.NamedTuple):
    x: int
    y: str = "d"
    def both(self):
        return self.x, self.y

class Fields(typing.TypedDict):
    a: int

class MoreFields(Fields, total=False):
    b: str

@ray.remote
def names(value):
    assert dataclasses.fields(value)[0].default is dataclasses.MISSING
    return [field.name for field in dataclasses.fields(value)], dataclasses.asdict(value), dataclasses.replace(value)

@ray.remote
def both(point):
    return point.both(), point._fields, Point(4), sorted(MoreFields.__required_keys__), MoreFields(a=1)

ray.init(num_cpus=1)
assert ray.get(names.remote(Plain(1))) == (["x", "y"], {"x": 1, "y": []}, Plain(1))
assert ray.get(names.remote(Slotted(1))) == (["a"], {"a": 1}, Slotted(1))
got = ray.get(both.remote(Point(3)))
assert got == ((3, "d"), ("x", "y"), Point(4), ["a"], {"a": 1}) and type(got[2]) is Point
print("whole")
"""


def test_dataclasses_and_typed_classes_of_main_arrive_whole(tmp_path):
    assert last_line_of(tmp_path, TYPED_CLASSES) == "whole"


def test_a_function_keeps_the_name_of_its_file(monkeypatch):
    """Newer versions of cloudpickle leave the name of the file out."""
    original = cloudpickle._reduce_code_without_file

    def forget(code):
        make, arguments, *rest = original(code)
        named = ("<dynamic-code>" if one == code.co_filename else one for one in arguments)
        return (make, tuple(named), *rest)

    monkeypatch.setattr(cloudpickle, "_reduce_code_without_file", forget)
    pickled = cloudpickle.dumps(lambda: None)
    assert pickle.loads(pickled).__code__.co_filename == __file__
