"""Objects to values and back, without a cluster."""

import pickle

import numpy as np
import pytest

import ray
from ray import _raylet


def round_trip(value):
    return _raylet._decode(*_raylet._encode(value))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        1,
        -1,
        255,
        256,
        65536,
        -(2**31),
        2**31,
        2**63 - 1,
        -(2**63),
        2**63,
        2**200,
        1.5,
        float("inf"),
        -0.0,
        1j,
        "",
        "x",
        "ü" * 127,
        "y" * 255,
        "y" * 256,
        "z" * 100_000,
        "\ud800",
        b"",
        b"abc",
        b"q" * 300,
        bytearray(b"abc"),
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        ((((1,),),),),
        (((((1,),),),),),
        [],
        [1, "a", None],
        [[1], [2]],
        {},
        {"a": [1, {2: 3}]},
        {1, 2},
        frozenset("ab"),
        list(range(1000)),
        ["s"] * 64,
        ["s"] * 65,
        range(3),
        Ellipsis,
    ],
)
def test_values_keep_type_and_content(value):
    copy = round_trip(value)
    assert type(copy) is type(value)
    assert copy == value


def test_pickles_of_scalars_are_ordinary_pickles():
    for value in (7, 70_000, -5, 2**40, 1.25, "text", (1, "a", None), [1, (2, b"x")]):
        kind, inband, buffers = _raylet._encode(value)
        assert pickle.loads(inband) == value and buffers == []


def test_our_reader_takes_what_pickle_writes():
    for value in (
        7,
        70_000,
        -5,
        2**40,
        1.25,
        "text",
        b"bytes",
        (1, "a", None),
        [1, (2, b"x")],
        ["a", "a"],
        {"a": 1},
    ):
        assert _raylet._decode(0, pickle.dumps(value, protocol=5), []) == value


def test_malformed_pickles_are_errors():
    whole = pickle.dumps((1, "abc", [2]), protocol=5)
    for end in range(len(whole)):
        with pytest.raises(Exception):
            _raylet._decode(0, whole[:end], [])


def test_sharing_survives():
    inner = []
    a, b = round_trip((inner, inner))
    assert a is b
    loop = []
    loop.append(loop)
    copy = round_trip(loop)
    assert copy[0] is copy


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3),
        np.zeros((200, 200)),
        np.asfortranarray(np.ones((3, 4))),
        np.array(["a", "bc"]),
        np.zeros(0),
    ],
)
def test_arrays_are_read_only_views(array):
    copy = round_trip({"a": [array]})["a"][0]
    assert (copy == array).all() and copy.dtype == array.dtype and copy.shape == array.shape
    assert not copy.flags.writeable
    with pytest.raises(ValueError):
        copy[...] = array


def test_object_arrays_and_numpy_scalars():
    array = np.array([None, {"a": 1}], dtype=object)
    assert list(round_trip(array)) == list(array)
    assert (
        round_trip(np.float32(1.5)) == np.float32(1.5)
        and type(round_trip(np.float32(1.5))) is np.float32
    )


def test_instances_of_local_classes_and_lambdas():
    class Point:
        def __init__(self, x):
            self.x = x

    assert round_trip([Point(3)])[0].x == 3
    assert round_trip(lambda x: x + 1)(1) == 2


def test_what_cannot_be_pickled_is_named():
    import threading

    with pytest.raises(TypeError, match="Could not serialize") as error:
        _raylet._encode({"fine": 1, "bad": threading.Lock()})
    assert "'bad'" in str(error.value)


def test_ids_convert_compare_and_refuse_wrong_bytes():
    ref = ray.ObjectRef(bytes(range(28)))
    assert (
        ref.hex() == bytes(range(28)).hex()
        and ref.binary() == bytes(range(28))
        and repr(ref) == f"ObjectRef({ref.hex()})"
    )
    assert ref == ray.ObjectRef.from_hex(ref.hex()) and hash(ref) == hash(
        ray.ObjectRef.from_binary(ref.binary())
    )
    assert ref != 3 and not ref.is_nil() and ray.ObjectRef.nil().is_nil() and ref.size() == 28
    assert ref.task_id() == ray.TaskID(bytes(range(24))) and ref.job_id() == ray.JobID(
        bytes(range(20, 24))
    )
    assert pickle.loads(pickle.dumps(ref)) == ref
    for bad in (b"short", "text", None):
        with pytest.raises((TypeError, ValueError)):
            ray.ObjectRef(bad)
    assert ray.JobID.from_int(1).hex() == "01000000" and ray.JobID.from_int(258).int() == 258
    assert ray.TaskID.for_driver_task(ray.JobID.from_int(1)).job_id() == ray.JobID.from_int(1)
    assert (
        pickle.loads(pickle.dumps(ray.NodeID.nil())) == ray.NodeID.nil()
        and repr(ray.JobID.from_int(1)) == "JobID(01000000)"
    )


def test_inspect_serializability(capsys):
    import threading

    lock = threading.Lock()

    def function():
        return lock

    ok, failures = ray.util.inspect_serializability(function, "function")
    assert not ok and any(failure[1] == "lock" for failure in failures)
    assert "lock" in capsys.readouterr().out
    assert ray.util.inspect_serializability(3) == (True, set())
