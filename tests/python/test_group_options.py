"""The options of tasks and actors that concern placement groups, checked where Ray checks them."""

import pytest

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)


@ray.remote
def where():
    return ray.get_runtime_context().get_placement_group_id()


@ray.remote
class Where:
    def where(self):
        return ray.get_runtime_context().get_placement_group_id()


def place(remote, **options):
    """Returns the group in which the task or actor ran."""
    made = remote.options(**options).remote()
    return ray.get(made if remote is where else made.where.remote(), timeout=60)


@pytest.fixture(scope="module")
def group(cluster):
    group = placement_group([{"CPU": 1}, {"CPU": 1, "thing": 1}])
    assert group.wait(30)
    yield group
    remove_placement_group(group)


both = pytest.mark.parametrize("remote", [where, Where])


@both
def test_the_ways_to_name_a_group(group, remote):
    inside = group.id.hex()
    assert place(remote, scheduling_strategy=PlacementGroupSchedulingStrategy(group)) == inside
    assert place(remote, scheduling_strategy=PlacementGroupSchedulingStrategy(group, 1)) == inside
    assert place(remote, placement_group=group, placement_group_bundle_index=0) == inside
    strategy = PlacementGroupSchedulingStrategy(group)
    for nothing in (None, "default"):
        assert place(remote, placement_group=nothing, scheduling_strategy=strategy) == inside
    assert place(remote, placement_group_bundle_index=9, scheduling_strategy=strategy) == inside


@both
def test_the_ways_to_name_no_group(group, remote):
    for none in (None, "default", PlacementGroup.empty()):
        assert place(remote, placement_group=none) is None
        assert place(remote, scheduling_strategy=PlacementGroupSchedulingStrategy(none)) is None
    assert place(remote, placement_group_capture_child_tasks=True) is None


@both
@pytest.mark.parametrize("index", [2, -2, 100])
def test_a_bundle_that_the_group_lacks(group, remote, index):
    strategy = PlacementGroupSchedulingStrategy(group, index)
    with pytest.raises(ValueError, match=f"bundle index {index} is invalid.*0-1"):
        remote.options(scheduling_strategy=strategy).remote()
    old = remote.options(placement_group=group, placement_group_bundle_index=index)
    with pytest.raises(ValueError, match=f"bundle index {index} is invalid"):
        old.remote()


@both
@pytest.mark.parametrize("index", ["0", None])
def test_a_bundle_index_of_another_type(group, remote, index):
    made = remote.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, index))
    with pytest.raises(TypeError):
        made.remote()
    with pytest.raises(TypeError, match="placement_group_bundle_index"):
        remote.options(placement_group=group, placement_group_bundle_index=index)


@both
def test_a_bundle_index_needs_a_group(cluster, remote):
    for none in (None, "default", PlacementGroup.empty()):
        with pytest.raises(ValueError, match="must be -1"):
            remote.options(scheduling_strategy=PlacementGroupSchedulingStrategy(none, 0)).remote()


@both
@pytest.mark.parametrize(
    "request_, shown",
    [
        ({"num_cpus": 2}, "'CPU': 2"),
        ({"num_gpus": 1}, "'GPU': 1"),
        ({"resources": {"thing": 2}}, "'thing': 2"),
        ({"num_cpus": 1, "memory": 100}, "'memory': 100"),
    ],
)
def test_a_request_that_fits_in_no_bundle(group, remote, request_, shown):
    strategy = PlacementGroupSchedulingStrategy(group)
    name = "where" if remote is where else "Where"
    with pytest.raises(ValueError, match=f"Cannot schedule {name} .*{shown}.*any bundles"):
        remote.options(scheduling_strategy=strategy, **request_).remote()


def test_an_actor_needs_a_cpu_for_its_creation(cluster):
    group = placement_group([{"CPU": 0.5}, {"thing": 1}])
    strategy = PlacementGroupSchedulingStrategy(group)
    with pytest.raises(ValueError, match="the actor requires 1 CPU for creation"):
        Where.options(scheduling_strategy=strategy).remote()
    assert place(Where, scheduling_strategy=strategy, num_cpus=0) == group.id.hex()
    assert place(Where, scheduling_strategy=strategy, num_cpus=0.5) == group.id.hex()
    remove_placement_group(group)


@both
def test_both_kinds_of_options_are_refused(group, remote):
    for strategy in ("SPREAD", "DEFAULT", PlacementGroupSchedulingStrategy(group)):
        with pytest.raises(ValueError, match="should be specified via the scheduling_strategy"):
            remote.options(placement_group=group, scheduling_strategy=strategy)


@pytest.mark.parametrize("target", [lambda: 1, type("A", (), {})])
def test_both_kinds_of_options_are_refused_when_they_come_together(group, target):
    old = {"placement_group": group}
    for new in (
        {"scheduling_strategy": "SPREAD"},
        {"scheduling_strategy": PlacementGroupSchedulingStrategy(group)},
    ):
        for first, second in ((old, new), (new, old)):
            remote = ray.remote(**first)(target)
            with pytest.raises(ValueError, match="should be specified via the scheduling_strategy"):
                remote.options(**second).remote()


@both
@pytest.mark.parametrize("wrong", [5, object()])
def test_a_group_of_another_type(cluster, remote, wrong):
    with pytest.raises(TypeError, match="type of keyword 'placement_group' must be"):
        remote.options(placement_group=wrong)
    with pytest.raises(TypeError, match="type of keyword 'placement_group' must be"):
        ray.remote(placement_group=wrong)(lambda: 1)


@both
def test_a_text_that_is_no_group(cluster, remote):
    with pytest.raises(AssertionError):
        remote.options(placement_group="x").remote()
    for wrong in ("x", 5):
        with pytest.raises(AssertionError):
            remote.options(scheduling_strategy=PlacementGroupSchedulingStrategy(wrong)).remote()
    with pytest.raises(TypeError, match="placement_group_capture_child_tasks"):
        remote.options(placement_group_capture_child_tasks="x")


@both
def test_a_group_that_nobody_knows(cluster, remote):
    unknown = PlacementGroup(ray.PlacementGroupID.from_random())
    with pytest.raises(KeyError, match="bundles"):
        remote.options(scheduling_strategy=PlacementGroupSchedulingStrategy(unknown)).remote()


@ray.remote(num_cpus=0)
class Outside:
    pass


@ray.remote(num_cpus=0)
def asked():
    context = ray.get_runtime_context()
    return (
        context.get_placement_group_id(),
        context.should_capture_child_tasks_in_placement_group,
    )


@ray.remote(num_cpus=0)
class Asked:
    def asked(self):
        return ray.get(asked.remote())


def children():
    """Returns which children run in the group of the calling task, and whether these capture their
    own children."""
    here = ray.get_runtime_context()
    group = ray.util.get_current_placement_group()
    options = {
        "nothing": {},
        "strategy None": {"scheduling_strategy": None},
        "DEFAULT": {"scheduling_strategy": "DEFAULT"},
        "SPREAD": {"scheduling_strategy": "SPREAD"},
        "affinity": {
            "scheduling_strategy": NodeAffinitySchedulingStrategy(here.get_node_id(), soft=False)
        },
        "in None": {"scheduling_strategy": PlacementGroupSchedulingStrategy(None)},
        "in default": {"scheduling_strategy": PlacementGroupSchedulingStrategy("default")},
        "group None": {"placement_group": None},
        "group default": {"placement_group": "default"},
        "capture no": {"placement_group_capture_child_tasks": False},
        "capture yes": {"placement_group_capture_child_tasks": True},
        "in the group": {"scheduling_strategy": PlacementGroupSchedulingStrategy(group)},
        "uncaptured": {"scheduling_strategy": PlacementGroupSchedulingStrategy(group, -1, False)},
    }
    found = {}
    for name, given in options.items():
        child, captures = ray.get(asked.options(**given).remote())
        found[name] = (child == group.id.hex(), captures)
        assert child in (None, group.id.hex())
    child, captures = ray.get(Asked.remote().asked.remote())
    found["actor's child"] = (child == group.id.hex(), captures)
    return found


@ray.remote
class Parent:
    def children(self):
        return children()


IN, OUT = (True, True), (False, False)
CAPTURED = {
    "nothing": IN,
    "strategy None": IN,
    "DEFAULT": OUT,
    "SPREAD": OUT,
    "affinity": OUT,
    "in None": OUT,
    "in default": IN,
    "group None": OUT,
    "group default": IN,
    "capture no": OUT,
    "capture yes": IN,
    "in the group": IN,
    "uncaptured": (True, False),
    "actor's child": IN,
}
NOT_CAPTURED = {
    **dict.fromkeys(CAPTURED, OUT),
    "capture yes": IN,
    "in the group": (True, False),
    "uncaptured": (True, False),
}


@pytest.mark.parametrize("capture, expected", [(True, CAPTURED), (None, NOT_CAPTURED)])
def test_which_children_run_in_the_group(group, capture, expected):
    strategy = PlacementGroupSchedulingStrategy(group, 0, capture)
    task = ray.remote(children).options(scheduling_strategy=strategy, num_cpus=0.5)
    assert ray.get(task.remote(), timeout=100) == expected
    actor = Parent.options(scheduling_strategy=strategy, num_cpus=0.5).remote()
    assert ray.get(actor.children.remote(), timeout=100) == expected


def test_a_captured_child_that_fits_in_no_bundle_is_refused(group):
    @ray.remote(num_cpus=0)
    def parent():
        for options, why in (
            ({"num_cpus": 5}, "cannot fit into any bundles"),
            ({"placement_group_bundle_index": 9}, "index 9 is invalid"),
        ):
            for remote in (asked, Outside):
                with pytest.raises(ValueError, match=why):
                    remote.options(**options).remote()
        return ray.get(asked.options(placement_group_bundle_index=1).remote())

    strategy = PlacementGroupSchedulingStrategy(group, 0, True)
    ran = ray.get(parent.options(scheduling_strategy=strategy).remote(), timeout=60)
    assert ran == (group.id.hex(), True)


def test_a_function_follows_the_group_of_each_caller(cluster):
    """One process runs the same function first in one group and then in another one."""
    first, second = placement_group([{"CPU": 1}]), placement_group([{"CPU": 1}])

    @ray.remote(num_cpus=0, max_calls=0)
    def parent():
        named = asked.options(placement_group_capture_child_tasks=True)
        kept = globals().setdefault("kept_child", named)
        return ray.get(kept.remote())[0], ray.get(asked.remote())[0]

    for group in (first, second, first):
        strategy = PlacementGroupSchedulingStrategy(group, -1, True)
        assert ray.get(parent.options(scheduling_strategy=strategy).remote(), timeout=60) == (
            group.id.hex(),
            group.id.hex(),
        )
    for group in (first, second):
        remove_placement_group(group)
