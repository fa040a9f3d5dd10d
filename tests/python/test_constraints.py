"""Constraints decide which nodes run a task: affinity, labels, and the GPUs of a node."""

import os

import pytest

import ray
from ray.cluster_utils import Cluster
from ray.exceptions import ActorUnschedulableError, TaskUnschedulableError
from ray.util.scheduling_strategies import (
    DoesNotExist,
    Exists,
    In,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
    NotIn,
)

SMALL = {"object_store_memory": 80 * 1024 * 1024}


@ray.remote(num_cpus=1)
def where():
    return ray.get_runtime_context().get_node_id()


@ray.remote(num_cpus=1)
class Where:
    def node(self):
        return ray.get_runtime_context().get_node_id()


@pytest.fixture(scope="module")
def nodes():
    """Yields the ids of three nodes: the head's without labels of ours, one in eu, one in us with
    the label gpu."""
    ray.shutdown()
    cluster = Cluster(initialize_head=True, connect=True, head_node_args={**SMALL, "num_cpus": 1})
    eu = cluster.add_node(**SMALL, num_cpus=1, labels={"region": "eu"})
    us = cluster.add_node(**SMALL, num_cpus=1, labels={"region": "us", "gpu": "yes"})
    cluster.wait_for_nodes()
    yield cluster.head_node.node_id, eu.node_id, us.node_id
    cluster.shutdown()


@pytest.mark.parametrize("index", range(3))
def test_node_affinity_places_tasks_and_actors_on_the_node(nodes, index):
    strategy = NodeAffinitySchedulingStrategy(nodes[index], soft=False)
    # There is one CPU, so the tasks wait there.
    assert (
        ray.get([where.options(scheduling_strategy=strategy).remote() for _ in range(3)])
        == [nodes[index]] * 3
    )
    actor = Where.options(scheduling_strategy=strategy).remote()
    assert ray.get(actor.node.remote()) == nodes[index]


def test_affinity_to_nobody(nodes):
    gone = ray.NodeID.from_random().hex()
    hard, soft = (
        NodeAffinitySchedulingStrategy(gone, soft=False),
        NodeAffinitySchedulingStrategy(gone, soft=True),
    )
    with pytest.raises(TaskUnschedulableError, match="doesn't exist any more"):
        ray.get(where.options(scheduling_strategy=hard).remote())
    assert ray.get(where.options(scheduling_strategy=soft).remote()) in nodes
    with pytest.raises(ActorUnschedulableError, match="doesn't exist any more"):
        ray.get(Where.options(scheduling_strategy=hard).remote().node.remote())
    assert ray.get(Where.options(scheduling_strategy=soft).remote().node.remote()) in nodes
    with pytest.raises(TaskUnschedulableError, match="doesn't have"):
        ray.get(
            where.options(
                num_cpus=2, scheduling_strategy=NodeAffinitySchedulingStrategy(nodes[1], soft=False)
            ).remote()
        )


def test_a_full_node_spills_or_fails_when_asked(nodes):
    holder = Where.options(
        scheduling_strategy=NodeAffinitySchedulingStrategy(nodes[1], soft=False)
    ).remote()
    assert ray.get(holder.node.remote()) == nodes[1]
    with pytest.raises(TaskUnschedulableError, match="no room"):
        ray.get(
            where.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(
                    nodes[1], soft=False, _fail_on_unavailable=True
                )
            ).remote()
        )
    spilled = ray.get(
        where.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(
                nodes[1], soft=True, _spill_on_unavailable=True
            )
        ).remote()
    )
    assert spilled in (nodes[0], nodes[2])


@pytest.mark.parametrize(
    "hard, soft, index",
    [
        ({"region": In("eu", "asia")}, None, [1]),
        ({"region": NotIn("eu")}, None, [0, 2]),
        ({"gpu": Exists()}, None, [2]),
        ({"region": DoesNotExist()}, None, [0]),
        ({"region": Exists()}, {"gpu": Exists()}, [2]),
        (None, {"region": In("eu")}, [1]),
    ],
)
def test_the_label_strategy_meets_hard_and_soft_conditions(nodes, hard, soft, index):
    # There is room everywhere, so that soft conditions are met, too.
    options = {
        "scheduling_strategy": NodeLabelSchedulingStrategy(hard, soft=soft),
        "num_cpus": 0,
    }
    assert ray.get(where.options(**options).remote()) in [nodes[i] for i in index]
    assert ray.get(Where.options(**options).remote().node.remote()) in [nodes[i] for i in index]


@pytest.mark.parametrize(
    "selector, index",
    [
        ({"region": "eu"}, [1]),
        ({"region": "!eu"}, [0, 2]),
        ({"region": "in(us, asia)"}, [2]),
        ({"region": "!in(us,eu)"}, [0]),
        ({"region": "us", "gpu": "yes"}, [2]),
    ],
)
def test_label_selector(nodes, selector, index):
    assert ray.get(where.options(label_selector=selector).remote()) in [nodes[i] for i in index]
    assert ray.get(Where.options(label_selector=selector).remote().node.remote()) in [
        nodes[i] for i in index
    ]


def test_the_nodes_own_label(nodes):
    assert ray.get(where.options(label_selector={"ray.io/node-id": nodes[2]}).remote()) == nodes[2]


def test_the_first_label_selector_that_matches_is_used(nodes):
    fallbacks = [{"label_selector": {"region": "venus"}}, {"label_selector": {"region": "us"}}]
    assert (
        ray.get(
            where.options(label_selector={"region": "mars"}, fallback_strategy=fallbacks).remote()
        )
        == nodes[2]
    )
    assert (
        ray.get(
            where.options(label_selector={"region": "eu"}, fallback_strategy=fallbacks).remote()
        )
        == nodes[1]
    )


def test_nobody_matches(nodes):
    waiting = where.options(label_selector={"region": "mars"}).remote()
    assert ray.wait([waiting, where.remote()])[1] == [waiting]
    ray.cancel(waiting)


@pytest.mark.parametrize(
    "selector",
    [
        {"region": "in(a"},
        {"region": "a b"},
        {"region": "!-x"},
        {"": "a"},
        {"a//b": "c"},
        {"region": 1},
        {"region": "in()"},
    ],
)
def test_bad_selectors_are_refused_at_the_call(nodes, selector):
    with pytest.raises(ValueError, match="label_selector"):
        where.options(label_selector=selector).remote()
    with pytest.raises(ValueError, match="label_selector"):
        Where.options(label_selector=selector).remote()


def test_gpu_ids_and_cuda_variables_follow_the_share_of_gpus(no_cluster):
    ray.init("local", num_cpus=4, num_gpus=3)

    @ray.remote
    def mine():
        return (
            ray.get_gpu_ids(),
            os.environ.get("CUDA_VISIBLE_DEVICES"),
            ray.get_runtime_context().get_accelerator_ids()["GPU"],
        )

    @ray.remote
    class Holder:
        def mine(self):
            return ray.get_gpu_ids(), os.environ.get("CUDA_VISIBLE_DEVICES")

    assert ray.get_gpu_ids() == []
    assert ray.get(mine.remote()) == ([], None, [])
    assert ray.get(mine.options(num_gpus=2).remote()) == ([0, 1], "0,1", ["0", "1"])
    halves = [Holder.options(num_gpus=0.5).remote() for _ in range(2)]
    first, second = ray.get([half.mine.remote() for half in halves])
    assert first == second and first[1] == str(first[0][0])
    whole = Holder.options(num_gpus=2).remote()
    ids, variable = ray.get(whole.mine.remote())
    assert sorted([*ids, *first[0]]) == [0, 1, 2] and variable == ",".join(map(str, ids))
    waiting = mine.options(num_gpus=1).remote()
    assert ray.wait([waiting, mine.remote()])[1] == [waiting]
    ray.kill(whole)
    assert ray.get(waiting)[0][0] in ids
    # Workers that had GPUs are not used again.
    assert ray.get(mine.remote()) == ([], None, [])


def test_gpus_of_a_node_that_names_them(no_cluster, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-abc")
    ray.init("local", num_cpus=2, num_gpus=2)

    @ray.remote(num_gpus=2)
    def mine():
        return ray.get_gpu_ids(), os.environ.get("CUDA_VISIBLE_DEVICES")

    assert ray.get(mine.remote()) == (["5", "GPU-abc"], "5,GPU-abc")


def test_the_variable_is_left_alone_when_asked(no_cluster, monkeypatch):
    monkeypatch.setenv("RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "1")
    ray.init("local", num_cpus=1, num_gpus=2)

    @ray.remote(num_gpus=1)
    def mine():
        return ray.get_gpu_ids(), os.environ.get("CUDA_VISIBLE_DEVICES")

    assert ray.get(mine.remote()) == ([0], None)


def test_labels_and_resources_of_the_environment_win(no_cluster, monkeypatch):
    monkeypatch.setenv("RAY_OVERRIDE_LABELS", '{"region": "moon"}')
    monkeypatch.setenv("RAY_OVERRIDE_RESOURCES", '{"thing": 3}')
    ray.init(
        "local",
        num_cpus=1,
        labels={"region": "eu", "kind": "x"},
        resources={"thing": 1, "other": 1},
    )
    assert {name: ray.cluster_resources()[name] for name in ("CPU", "thing", "other")} == {
        "CPU": 1,
        "thing": 3,
        "other": 1,
    }
    labels = ray.get_runtime_context().get_node_labels()
    assert (labels["region"], labels["kind"]) == ("moon", "x")
