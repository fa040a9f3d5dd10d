"""Placement groups on clusters of several nodes: which node holds which bundle."""

import pytest
from waiting import until

import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

SMALL = {"object_store_memory": 80 * 1024 * 1024}


@ray.remote(num_cpus=0.5)
def where():
    return ray.get_runtime_context().get_node_id()


@ray.remote(num_cpus=0.5, max_restarts=-1, max_task_retries=-1)
class Where:
    def where(self):
        return ray.get_runtime_context().get_node_id()


@pytest.fixture(scope="module")
def nodes():
    """Yields the ids of three nodes of 2 CPUs: the head's, one in eu, one in us."""
    ray.shutdown()
    cluster = Cluster(initialize_head=True, connect=True, head_node_args={**SMALL, "num_cpus": 2})
    eu = cluster.add_node(**SMALL, num_cpus=2, labels={"region": "eu"})
    us = cluster.add_node(**SMALL, num_cpus=2, labels={"region": "us"})
    cluster.wait_for_nodes()
    yield cluster.head_node.node_id, eu.node_id, us.node_id
    cluster.shutdown()


@pytest.fixture
def placed(nodes):
    """Makes a group, and returns it with the nodes of its bundles; removes it after the test."""
    until(lambda: ray.available_resources().get("CPU") == 6)
    made = []

    def place(*args, **options):
        group = placement_group(*args, **options)
        made.append(group)
        assert group.wait(30)
        return group, list(placement_group_table(group)["bundles_to_node_id"].values())

    yield place
    for group in made:
        remove_placement_group(group)


def test_strategies(nodes, placed):
    one = [{"CPU": 0.1}]
    for strategy, most in (("PACK", 1), ("STRICT_PACK", 1), ("SPREAD", 3), ("STRICT_SPREAD", 3)):
        _, where_ = placed(one * 3, strategy=strategy)
        assert len(set(where_)) == most, strategy
    _, where_ = placed(one * 2, topology_strategy={"ray.io/node-id": "STRICT_SPREAD"})
    assert len(set(where_)) == 2
    too_many = placement_group(one * 4, strategy="STRICT_SPREAD")
    assert too_many.wait(0.2) is False
    remove_placement_group(too_many)


def test_labels(nodes, placed):
    _, eu, us = nodes
    selectors = [{"region": "us"}, {"region": "eu"}, {"region": "in(us, as)"}]
    _, where_ = placed([{"CPU": 0.5}] * 3, bundle_label_selector=selectors)
    assert where_ == [us, eu, us]
    _, where_ = placed([{"CPU": 1}], bundle_label_selector=[{"region": "!eu"}])
    assert where_[0] != eu


@pytest.mark.parametrize("index", range(3))
def test_a_preferred_node(nodes, placed, index):
    _, where_ = placed(
        [{"CPU": 0.5}] * 2, strategy="STRICT_PACK", _soft_target_node_id=nodes[index]
    )
    assert where_ == [nodes[index]] * 2


def test_a_topology(nodes, placed):
    _, eu, us = nodes
    # The bundles need more than one node has, but the nodes of one region have it: 2 CPUs each.
    _, where_ = placed([{"CPU": 1}] * 2, topology_strategy={"region": "STRICT_PACK"})
    assert where_[0] == where_[1] and where_[0] in (eu, us)


def test_tasks_and_actors_run_at_their_bundles(nodes, placed):
    group, where_ = placed([{"CPU": 1}] * 3, strategy="STRICT_SPREAD")
    for index, node in enumerate(where_):
        options = {"scheduling_strategy": PlacementGroupSchedulingStrategy(group, index)}
        actor = Where.options(**options).remote()
        calls = [where.options(**options).remote() for _ in range(3)]
        assert ray.get([*calls, actor.where.remote()], timeout=60) == [node] * 4
    anywhere = PlacementGroupSchedulingStrategy(group)
    assert ray.get(where.options(scheduling_strategy=anywhere).remote(), timeout=60) in where_


def test_a_lost_bundle_moves_and_its_tasks_follow():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, connect=True, head_node_args={**SMALL, "num_cpus": 1})
    lost = cluster.add_node(**SMALL, num_cpus=2, resources={"there": 1})
    cluster.wait_for_nodes()
    try:
        group = placement_group([{"CPU": 1}, {"CPU": 1, "there": 0.1}], strategy="STRICT_SPREAD")
        assert group.wait(30)
        kept = placement_group_table(group)["bundles_to_node_id"][0]
        assert placement_group_table(group)["bundles_to_node_id"][1] == lost.node_id
        options = {"scheduling_strategy": PlacementGroupSchedulingStrategy(group, 1)}
        actor = Where.options(**options).remote()
        assert ray.get(actor.where.remote(), timeout=60) == lost.node_id
        cluster.remove_node(lost, allow_graceful=False)
        until(lambda: placement_group_table(group)["state"] == "RESCHEDULING")
        waiting = where.options(**options).remote()
        assert ray.wait([waiting], timeout=0.2)[0] == []
        other = cluster.add_node(**SMALL, num_cpus=2, resources={"there": 1})
        assert ray.get([waiting, actor.where.remote()], timeout=100) == [other.node_id] * 2
        assert group.wait(30)
        assert placement_group_table(group)["bundles_to_node_id"] == {0: kept, 1: other.node_id}
    finally:
        cluster.shutdown()
