"""The helpers of ray.util that have no test file of their own: results, serializers, log_once."""

import io
import os
import subprocess
import sys
import threading

import pytest

import ray
import ray.util
from ray.util import accelerators, as_completed, inspect_serializability, map_unordered
from ray.util.scheduling_strategies import (
    DoesNotExist,
    Exists,
    In,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
    NotIn,
    PlacementGroupSchedulingStrategy,
)

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def same(x):
    return x


@ray.remote
def wait(gates):
    ray.get(gates)


@ray.remote
def fail():
    raise KeyError("no")


@ray.remote(num_cpus=0)
class Echo:
    def echo(self, x):
        return x


class Locked:
    """A value that does not pickle."""

    def __init__(self, value):
        self.value = value
        self.lock = threading.Lock()


# ---- as_completed, map_unordered


def test_as_completed():
    refs = [same.remote(i) for i in range(25)]
    assert sorted(as_completed(refs)) == list(range(25))
    assert set(as_completed(refs, chunk_size=1, yield_obj_refs=True)) == set(refs)
    assert list(as_completed([])) == []


def test_as_completed_gives_what_is_ready_first():
    never = Echo.options(resources={"absent": 1}).remote().echo.remote(1)
    results = as_completed([never, same.remote(1)], chunk_size=1)
    assert next(results) == 1


def test_as_completed_errors():
    for wrong in ({"chunk_size": 0}, {"chunk_size": -1}, {"num_returns": 1}):
        with pytest.raises(ValueError):
            list(as_completed([same.remote(1)], **wrong))
    with pytest.raises(TypeError):
        list(as_completed([1]))
    with pytest.raises(KeyError):
        list(as_completed([fail.remote()]))


def test_map_unordered():
    for options in (
        {},
        {"backpressure_size": 2},
        {"backpressure_size": 2, "chunk_size": 1},
        {"backpressure_size": None},
    ):
        assert sorted(map_unordered(same, range(30), **options)) == list(range(30))
    assert sorted(map_unordered(Echo.remote().echo, range(5))) == list(range(5))
    assert list(map_unordered(same, [])) == []
    assert all(
        isinstance(ref, ray.ObjectRef) for ref in map_unordered(same, range(3), yield_obj_refs=True)
    )
    for wrong in (
        {"backpressure_size": 0},
        {"backpressure_size": -1},
        {"chunk_size": 0},
        {"num_returns": 1},
    ):
        with pytest.raises(ValueError):
            list(map_unordered(same, range(3), **wrong))


def test_map_unordered_holds_back():
    read = []

    def items():
        for i in range(1000):
            read.append(i)
            yield i

    results = map_unordered(same, items(), backpressure_size=5, chunk_size=1)
    next(results)
    assert len(read) == 5


# ---- serialisation


def test_custom_serializer():
    with pytest.raises(TypeError):
        ray.put(Locked(1))
    ray.util.register_serializer(
        Locked, serializer=lambda locked: locked.value, deserializer=Locked
    )
    try:
        assert ray.get(ray.put(Locked(5))).value == 5
        assert ray.get(ray.remote(lambda items: items[0].value).remote([Locked(6)])) == 6
    finally:
        ray.util.deregister_serializer(Locked)
    with pytest.raises(TypeError):
        ray.put(Locked(1))
    ray.util.deregister_serializer(Locked)


def test_a_serializer_can_take_the_place_of_a_working_one():
    class Plain:
        pass

    ray.util.register_serializer(
        Plain, serializer=lambda plain: 1, deserializer=lambda one: ("made of", one)
    )
    assert ray.get(same.remote(Plain())) == ("made of", 1)
    ray.util.deregister_serializer(Plain)
    assert type(ray.get(ray.put(Plain()))).__name__ == "Plain"


def test_inspect_serializability():
    out = io.StringIO()
    assert inspect_serializability(3, name="three", print_file=out) == (True, set())
    assert "Checking Serializability of three" in out.getvalue()
    holder = Locked(1)
    well, failures = inspect_serializability(holder, name="holder", print_file=out)
    (failure,) = failures
    assert (
        not well
        and tuple(failure) == (holder.lock, "lock", holder)
        and "FailTuple(lock" in out.getvalue()
    )


def test_inspect_closures():
    lock = threading.Lock()

    def closure():
        return lock

    well, failures = inspect_serializability(closure, print_file=io.StringIO())
    assert not well and [(found, name) for found, name, _ in map(tuple, failures)] == [
        (lock, "lock")
    ]


# ---- facts


def test_list_named_actors():
    assert ray.util.list_named_actors() == []
    here, there = (
        Echo.options(name="here").remote(),
        Echo.options(name="there", namespace="other").remote(),
    )
    ray.get([here.echo.remote(1), there.echo.remote(1)])
    assert ray.util.list_named_actors() == ["here"]
    everywhere = ray.util.list_named_actors(all_namespaces=True)
    mine = ray.get_runtime_context().namespace
    assert sorted(everywhere, key=lambda each: each["name"]) == [
        {"name": "here", "namespace": mine},
        {"name": "there", "namespace": "other"},
    ]
    ray.kill(here)
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(here.echo.remote(1))
    assert ray.util.list_named_actors() == []


def test_the_address_is_known_before_init():
    """Asking for it must not start a cluster, because ray.init() would then refuse to."""
    script = """
import os, ray.util
print(ray.util.get_node_ip_address("127.0.0.1:53"), ray.util.get_node_ip_address("nonsense"))
os.environ["RAY_NODE_IP_ADDRESS"] = "127.0.0.9"
print(ray.util.get_node_ip_address(), ray.is_initialized())
"""
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()
    assert [address.count(".") for address in shown[:2]] == [3, 3]
    assert shown[2:] == ["127.0.0.9", "False"]


def test_node_facts(monkeypatch):
    assert ray.util.get_node_ip_address() == ray.nodes()[0]["NodeManagerAddress"]
    monkeypatch.delenv("RAY_CLOUD_INSTANCE_ID", raising=False)
    assert ray.util.get_node_instance_id() == ""
    monkeypatch.setenv("RAY_CLOUD_INSTANCE_ID", "i-1")
    assert ray.util.get_node_instance_id() == "i-1"


def test_log_once():
    script = """
import time
now = 1000.0
time.monotonic = time.time = lambda: now  # Ray asks the second one.
import ray.util as u
print(u.log_once("a"), u.log_once("a"), u.log_once("b"))
now += 61
print(u.log_once("a"), u.log_once("a"))
u.enable_periodic_logging()
print(u.log_once("a"), u.log_once("a"), u.log_once("a"), u.log_once("c"))
now += 61
print(u.log_once("new"), u.log_once("new"), u.log_once("a"))
now += 61
print(u.log_once("a"), u.log_once("new"), u.log_once("a"))
u.disable_log_once_globally()
print(u.log_once("d"))
u.enable_periodic_logging()
print(u.log_once("d"))
"""
    assert subprocess.check_output([sys.executable, "-c", script], text=True).splitlines() == [
        "True False True",
        "False False",
        "False True False True",
        "True False False",
        "False True True",
        "False",
        "False",
    ]


def test_accelerator_names():
    assert (
        accelerators.NVIDIA_H100,
        accelerators.NVIDIA_A100,
        accelerators.NVIDIA_TESLA_V100,
        accelerators.GOOGLE_TPU_V4,
    ) == ("H100", "A100", "V100", "TPU-V4")


def test_everything_promised_is_there():
    for name in ray.util.__all__:
        assert getattr(ray.util, name) is not None
    for name in ("iter", "ActorGroup", "connect", "disconnect", "collective"):
        with pytest.raises(NotImplementedError, match=f"ray.util.{name}"):
            getattr(ray.util, name)
    with pytest.raises(AttributeError):
        ray.util.nonsense


def test_import_ray_does_not_import_this():
    script = "import sys, ray; print([name for name in sys.modules if name.startswith(('ray.util', 'ray.dag', 'ray.experimental', 'ray.cluster_utils'))])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


# ---- scheduling strategies


def test_node_affinity_arguments():
    node_id = ray.nodes()[0]["NodeID"]
    strategy = NodeAffinitySchedulingStrategy(ray.NodeID.from_hex(node_id), True)
    assert (
        strategy.node_id,
        strategy.soft,
        strategy._spill_on_unavailable,
        strategy._fail_on_unavailable,
    ) == (node_id, True, False, False)
    for wrong in (
        lambda: NodeAffinitySchedulingStrategy("zz", False),
        lambda: NodeAffinitySchedulingStrategy("ab", False),
        lambda: NodeAffinitySchedulingStrategy(node_id, False, _spill_on_unavailable=True),
        lambda: NodeAffinitySchedulingStrategy(node_id, True, _fail_on_unavailable=True),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_label_arguments():
    strategy = NodeLabelSchedulingStrategy(
        {"a": In("x", "y"), "b": Exists()}, soft={"c": NotIn("z"), "d": DoesNotExist()}
    )
    assert strategy.hard["a"].values == ["x", "y"] and strategy.soft["c"].values == ["z"]
    NodeLabelSchedulingStrategy(None, soft={"a": In("x")})
    for wrong in (
        lambda: NodeLabelSchedulingStrategy({}),
        lambda: NodeLabelSchedulingStrategy(3),
        lambda: NodeLabelSchedulingStrategy({"a": "x"}),
        lambda: NodeLabelSchedulingStrategy({3: In("x")}),
        lambda: NodeLabelSchedulingStrategy({"a": In("x")}, soft=3),
        In,
        NotIn,
        lambda: In(3),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_placement_group_arguments():
    strategy = PlacementGroupSchedulingStrategy("group")
    assert (
        strategy.placement_group_bundle_index,
        strategy.placement_group_capture_child_tasks,
    ) == (-1, None)
    with pytest.raises(TypeError):
        PlacementGroupSchedulingStrategy()


def test_named_strategies():
    for strategy in ("DEFAULT", "SPREAD", None):
        assert ray.get(same.options(scheduling_strategy=strategy).remote(1)) == 1
    with pytest.raises(ValueError, match="'NEAR': it is one of 'DEFAULT', 'SPREAD'"):
        same.options(scheduling_strategy="NEAR").remote(1)


# ---- joblib


def test_joblib_is_named_when_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "joblib", None)
    from ray.util.joblib import register_ray

    with pytest.raises(ImportError, match="pip install joblib"):
        register_ray()


def test_joblib_backend(monkeypatch):
    """A stand-in for the base class of joblib makes the calls that joblib makes of a backend."""
    import sys
    import types

    registered, resets = {}, []
    batching = types.ModuleType("joblib._parallel_backends")
    batching.AutoBatchingMixin = type(
        "AutoBatchingMixin", (), {"reset_batch_stats": lambda self: resets.append(self)}
    )
    parallel = types.ModuleType("joblib.parallel")
    parallel.register_parallel_backend = registered.__setitem__
    parallel.ParallelBackendBase = type(
        "ParallelBackendBase", (), {"__init__": lambda self, **options: None}
    )
    for name, module in (
        ("joblib", types.ModuleType("joblib")),
        ("joblib.parallel", parallel),
        ("joblib._parallel_backends", batching),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    from ray.util.joblib import register_ray

    register_ray()
    backend = registered["ray"](ray_remote_args={"num_cpus": 0})
    assert (
        backend.effective_n_jobs(-1) == 4
        and backend.effective_n_jobs(-2) == 3
        and backend.effective_n_jobs(100) == 4
    )
    with pytest.raises(ValueError):
        backend.effective_n_jobs(0)
    owner = types.SimpleNamespace(n_jobs=2)
    assert backend.configure(n_jobs=2, parallel=owner) == 2
    done = []
    result = backend.submit(lambda: os.getpid(), callback=done.append)
    assert result.get(timeout=60) != os.getpid() and done == [result.get()]

    def assigned():
        return ray.get_runtime_context().get_assigned_resources()

    # The options of a call stay those of the processes that replace the aborted ones.
    backend.terminate()
    backend.configure(n_jobs=2, parallel=owner, ray_remote_args={"num_cpus": 0.25})
    assert backend.apply_async(assigned).get() == {"CPU": 0.25}
    resets.clear()
    backend.abort_everything()
    assert backend.apply_async(assigned).get() == {"CPU": 0.25}
    assert resets, "the next call would begin with batches of the size that suited this one"
    backend.terminate()
    backend.terminate()
    monkeypatch.delitem(sys.modules, "ray.util.joblib.ray_backend")
