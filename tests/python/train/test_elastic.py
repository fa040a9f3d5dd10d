"""Runs whose number of workers may change."""

import types

import pytest

import ray
import ray.train
from ray.train import RunConfig, ScalingConfig
from ray.train.room import possible_workers
from ray.train.run import limits_of
from ray.train.spec import Settings
from train_support import stay


def elastic(fewest, most, **arguments):
    return ScalingConfig(num_workers=(fewest, most), **arguments)


@ray.remote(num_cpus=1)
class Tenant:
    """Holds CPUs as long as it lives."""

    def ready(self):
        return True


def taken(cpus):
    """Makes actors that hold so many CPUs together."""
    tenants = [Tenant.remote() for _ in range(cpus)]
    ray.get([tenant.ready.remote() for tenant in tenants])
    return tenants


def released(tenants):
    for tenant in tenants:
        ray.kill(tenant)


def world_size():
    return ray.train.get_context().get_world_size()


def test_the_most_workers_when_there_is_room(fit):
    result = fit(world_size, scaling_config=elastic(1, 3))
    assert result.return_value == 3


def test_fewer_workers_when_there_is_less(fit):
    tenants = taken(2)
    try:
        assert fit(world_size, scaling_config=elastic(1, 4)).return_value == 2
    finally:
        released(tenants)


def test_it_grows_when_there_is_more_room(fit, tmp_path):
    tenants = taken(3)

    def function():
        if world_size() == 1:
            (tmp_path / "saved").mkdir()
            ray.train.report({"n": 1}, ray.train.Checkpoint.from_directory(tmp_path / "saved"))
            ray.train.get_all_reported_checkpoints()
            released(tenants)
            stay()
        return world_size(), ray.train.get_checkpoint() is not None

    scaling = elastic(1, 4, elastic_resize_monitor_interval_s=0.3)
    result = fit(function, scaling_config=scaling)
    assert result.return_value[0] > 1 and result.return_value[1]


@pytest.mark.parametrize("given, interval", [(0, 1.0), (0.5, 1.0), (7, 7)])
def test_the_nodes_are_not_asked_without_a_pause(given, interval):
    scaling = ScalingConfig(num_workers=(1, 2), elastic_resize_monitor_interval_s=given)
    spec = types.SimpleNamespace(
        scaling_config=scaling, run_config=RunConfig(), settings=Settings()
    )
    assert limits_of(spec).resize_interval_s == interval


def node(name, cpus, alive=True, **labels):
    free = {"CPU": cpus} if cpus else {}
    return {"NodeID": name, "Alive": alive, "_available": free, "Labels": labels}


def test_possible_workers_on_many_nodes():
    nodes = [
        {"Alive": True, "NodeID": str(i), "Labels": {"a": "b"}, "_available": {"CPU": 1}}
        for i in range(1200)
    ]
    for selectors in (None, [{"a": "b"}] * 1300, [{"a": "b"}, {"a": "!c"}] * 650):
        assert possible_workers(nodes, {"CPU": 1}, "PACK", 1300, {}, selectors) == 1200
        assert possible_workers(nodes, {"CPU": 1}, "STRICT_PACK", 1300, {}, selectors) == 1


def test_possible_workers():
    nodes = [node("a", 2.5), node("b", 0), node("c", 4), node("d", 9, alive=False)]
    possible = lambda strategy, held: possible_workers(nodes, {"CPU": 1}, strategy, 10, held)
    assert possible("PACK", {}) == 6
    assert possible("SPREAD", {"b": 1, "d": 1}) == 7
    assert possible("STRICT_SPREAD", {}) == 2
    assert possible("STRICT_PACK", {"a": 1}) == 4
    assert possible_workers(nodes, {"CPU": 0.5, "GPU": 1}, "PACK", 10, {}) == 0
    assert possible_workers(nodes, {"CPU": 1}, "PACK", 3, {}) == 3
    assert possible_workers([], {"CPU": 1}, "STRICT_PACK", 3, {}) == 0


@pytest.mark.parametrize(
    "strategy, selectors, held, expected",
    [
        ("PACK", [{"zone": "x"}] * 9, {}, 3),
        ("PACK", [{"zone": "!x"}] * 9, {}, 5),
        ("PACK", [{"zone": "in(x, y)"}] * 9, {"b": 1}, 6),
        ("PACK", [{"zone": "x", "kind": "large"}] * 9, {}, 2),
        ("PACK", [{"zone": "nowhere"}] * 9, {}, 0),
        ("STRICT_PACK", [{"zone": "x"}] * 9, {}, 2),
        ("STRICT_SPREAD", [{"zone": "x"}] * 9, {}, 2),
        # Workers have the selectors in order, so that the group ends before the first worker
        # without room.
        ("PACK", [{}, {"zone": "nowhere"}, {}], {}, 1),
        ("STRICT_PACK", [{}, {"zone": "x"}, {"zone": "y"}], {}, 2),
        # The first two must leave the nodes of "x" to the others.
        ("PACK", [{"zone": "!y"}] * 3 + [{"zone": "x"}] * 3, {}, 6),
        ("STRICT_SPREAD", [{}, {"kind": "large"}, {"zone": "x"}], {}, 3),
        ("STRICT_SPREAD", [{}, {"kind": "large"}, {"kind": "large"}, {}], {}, 2),
    ],
)
def test_possible_workers_with_label_selectors(strategy, selectors, held, expected):
    nodes = [
        node("a", 2, zone="x", kind="large"),
        node("b", 1, zone="x"),
        node("c", 2, zone="y"),
        node("d", 3),
        node("e", 9, alive=False, zone="x", kind="large"),
    ]
    most = len(selectors)
    assert possible_workers(nodes, {"CPU": 1}, strategy, most, held, selectors) == expected
