"""The arguments that ray.util.placement_group() refuses, and its handles. Needs no cluster."""

import copy
import importlib
import pickle
import subprocess
import sys

import pytest

import ray
from ray import cloudpickle
from ray.util.placement_group import (
    VALID_PLACEMENT_GROUP_STRATEGIES,
    PlacementGroup,
    check_placement_group_index,
    placement_group,
    remove_placement_group,
    validate_placement_group,
)

ONE_CPU = [{"CPU": 1}]
NODE = "ab" * 28


@pytest.mark.parametrize("bundles", [None, "x", {"CPU": 1}, ({"CPU": 1},)])
def test_bundles_are_a_list(bundles):
    with pytest.raises(ValueError, match="bundles must be a list, got <class"):
        placement_group(bundles)


def test_a_group_needs_a_bundle():
    with pytest.raises(ValueError, match="Got empty list instead"):
        placement_group([])


@pytest.mark.parametrize("bundle", [1, {"CPU": "1"}, {"CPU": None}, {1: 1}, ["CPU"]])
def test_a_bundle_maps_names_to_numbers(bundle):
    with pytest.raises(ValueError, match="non-empty list of resource dictionaries"):
        placement_group([{"CPU": 1}, bundle])


@pytest.mark.parametrize("bundle", [{}, {"CPU": 0}, {"CPU": False, "GPU": 0.0}])
def test_a_bundle_holds_something(bundle):
    with pytest.raises(ValueError, match="empty dictionary or resources with only 0 values"):
        placement_group([{"CPU": 1}, bundle])


@pytest.mark.parametrize(
    "bundle, why",
    [
        ({"CPU": -1}, "positive number"),
        ({"CPU": float("nan")}, "finite"),
        ({"CPU": float("inf")}, "finite"),
        ({"thing": 0.00001}, "0.0001"),
        ({"thing": 10**15}, "maximum"),
        ({"GPU": 1.5}, "whole numbers"),
        ({"": 1}, "non-empty"),
    ],
)
def test_amounts_are_those_that_a_node_can_count(bundle, why):
    with pytest.raises(ValueError, match=why):
        placement_group([bundle])


@pytest.mark.parametrize(
    "bundle", [{"CPU": True}, {"CPU": 0, "thing": 1}, {"GPU": 0.5}, {"memory": 1e9}, {"x": 1.5}]
)
def test_amounts_that_are_accepted(bundle):
    assert validate_placement_group([bundle]) is None


def test_object_store_memory_warns():
    with pytest.warns(DeprecationWarning, match="object_store_memory"):
        validate_placement_group([{"object_store_memory": 1000}])


@pytest.mark.parametrize("strategy", ["NEAR", "pack", "", 1, []])
def test_an_unknown_strategy(strategy):
    with pytest.raises(ValueError, match="Invalid placement group strategy"):
        placement_group(ONE_CPU, strategy=strategy)


def test_known_strategies():
    assert VALID_PLACEMENT_GROUP_STRATEGIES == {"PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"}
    for strategy in (None, *VALID_PLACEMENT_GROUP_STRATEGIES):
        validate_placement_group(ONE_CPU, strategy=strategy)


@pytest.mark.parametrize("lifetime", ["forever", "", True, "non_detached"])
def test_an_unknown_lifetime(lifetime):
    with pytest.raises(ValueError, match="`lifetime` argument must be either"):
        placement_group(ONE_CPU, lifetime=lifetime)


@pytest.mark.parametrize("name", [5, None, ["a"]])
def test_a_name_is_text(name):
    with pytest.raises(TypeError, match="name is a string"):
        placement_group(ONE_CPU, name=name)


@pytest.mark.parametrize("strategy", [None, "PACK", "SPREAD", "STRICT_SPREAD"])
def test_a_preferred_node_is_for_strict_pack(strategy):
    with pytest.raises(ValueError, match="only works with STRICT_PACK but got"):
        placement_group(ONE_CPU, strategy=strategy, _soft_target_node_id=NODE)


@pytest.mark.parametrize("node, error", [("zz", ValueError), ("ab", ValueError), (5, TypeError)])
def test_a_preferred_node_is_an_id(node, error):
    with pytest.raises(error, match="_soft_target_node_id"):
        placement_group(ONE_CPU, strategy="STRICT_PACK", _soft_target_node_id=node)


@pytest.mark.parametrize("node", [None, "", NODE])
def test_preferred_nodes_that_are_accepted(node):
    validate_placement_group(ONE_CPU, strategy="STRICT_PACK", _soft_target_node_id=node)


@pytest.mark.parametrize(
    "selectors, why",
    [
        ({"a": "b"}, "must be a list"),
        ([], "length of `bundle_label_selector`"),
        ({}, "length of `bundle_label_selector`"),
        ([{}, {}], "length of `bundle_label_selector`"),
        ([1], "list of string dictionary"),
        ([{"a": 1}], "list of string dictionary"),
        ([{1: "a"}], "list of string dictionary"),
        ([{"a": "in(b"}], "Detailed error"),
        ([{"-a": "b"}], "Detailed error"),
    ],
)
def test_bad_label_selectors(selectors, why):
    with pytest.raises(ValueError, match=why):
        placement_group(ONE_CPU, bundle_label_selector=selectors)


@pytest.mark.parametrize("selector", [{}, {"a": ""}, {"a": "!b"}, {"a": "in(b,c)", "d": "e"}])
def test_label_selectors_that_are_accepted(selector):
    validate_placement_group(ONE_CPU, bundle_label_selector=[selector])


@pytest.mark.parametrize(
    "topology, why",
    [
        ("x", "must be a dict, got str"),
        ({"": "STRICT_PACK"}, "non-empty strings"),
        ({5: "STRICT_PACK"}, "non-empty strings"),
        ({"a": "X"}, "Invalid topology strategy 'X'"),
        ({"a": "PACK"}, "only 'STRICT_PACK' is supported"),
        ({"a": "STRICT_PACK", "b": "STRICT_PACK"}, "at most one topology label"),
    ],
)
def test_bad_topology_strategies(topology, why):
    with pytest.raises(ValueError, match=why):
        placement_group(ONE_CPU, topology_strategy=topology)


def test_topology_strategies_that_are_accepted():
    for topology in ({}, {"a": "STRICT_PACK"}, {"a": "STRICT_PACK", "ray.io/node-id": "SPREAD"}):
        validate_placement_group(ONE_CPU, topology_strategy=topology)
    with pytest.raises(ValueError, match="cannot both be specified"):
        validate_placement_group(ONE_CPU, "PACK", topology_strategy={"a": "STRICT_PACK"})


def test_a_handle_stands_for_its_group():
    group_id = ray.PlacementGroupID.from_random()
    group = PlacementGroup(group_id, [{"CPU": 1.0}])
    other = PlacementGroup(ray.PlacementGroupID.from_random())
    for same in (
        PlacementGroup(group_id),
        pickle.loads(pickle.dumps(group)),
        cloudpickle.loads(cloudpickle.dumps(group)),
        copy.deepcopy(group),
    ):
        assert same == group and hash(same) == hash(group) and same != other
    assert pickle.loads(pickle.dumps(group)).bundle_specs == [{"CPU": 1.0}]
    assert group != "group" and not group.is_empty and group.bundle_count == 1


def test_the_empty_group():
    empty = PlacementGroup.empty()
    assert empty.is_empty and empty == PlacementGroup.empty() and empty.id.is_nil()
    assert empty.wait(10) is False
    assert remove_placement_group(empty) is None
    assert ray.util.placement_group_table(empty) == {}
    with pytest.raises(KeyError, match="bundles"):
        empty.bundle_specs
    with pytest.raises(KeyError):
        empty.bundle_count


@pytest.mark.parametrize(
    "seconds, error", [(None, TypeError), ("1", TypeError), (float("nan"), ValueError)]
)
def test_a_time_to_wait_is_a_number(seconds, error):
    with pytest.raises(error, match="timeout_seconds"):
        PlacementGroup(ray.PlacementGroupID.from_random()).wait(seconds)


def test_a_negative_time_is_over():
    assert PlacementGroup(ray.PlacementGroupID.from_random()).wait(-1) is False


@pytest.mark.parametrize("what, error", [("x", AttributeError), (None, AssertionError)])
def test_only_a_group_can_be_removed(what, error):
    with pytest.raises(error):
        remove_placement_group(what)


def test_indexes_of_bundles():
    group = PlacementGroup(ray.PlacementGroupID.from_random(), [{"CPU": 1}] * 2)
    for index in (-1, 0, 1, True):
        check_placement_group_index(group, index)
    for index in (-2, 2, 100):
        with pytest.raises(ValueError, match=f"index {index} is invalid.*indexes: 0-1"):
            check_placement_group_index(group, index)
    for index in (None, "0"):
        with pytest.raises(TypeError):
            check_placement_group_index(group, index)
    with pytest.raises(ValueError, match="must be -1"):
        check_placement_group_index(PlacementGroup.empty(), 0)


ORDERS = (
    "import ray; f = ray.util.placement_group",
    "import ray.util.placement_group; f = ray.util.placement_group",
    "from ray.util.placement_group import PlacementGroup; import ray; f = ray.util.placement_group",
    "from ray.util import placement_group as f",
    "import ray.util.placement_group as f",
    "import ray, ray.util.scheduling_strategies, ray._private.placement_groups; "
    "f = ray.util.placement_group",
)


@pytest.mark.parametrize("order", ORDERS)
def test_the_function_is_found_whatever_is_imported_first(order):
    check = (
        "; import importlib; m = importlib.import_module('ray.util.placement_group')"
        "; assert f is m.placement_group and callable(f), f; assert m.PlacementGroup"
    )
    subprocess.run([sys.executable, "-c", order + check], check=True, timeout=60)


def test_functions_that_mention_the_package_are_pickled():
    for dumps in (pickle.dumps, cloudpickle.dumps):
        assert pickle.loads(dumps(ray.util)) is ray.util
    function = cloudpickle.loads(cloudpickle.dumps(lambda: ray.util.placement_group))
    assert function() is placement_group


def test_the_package_does_not_load_groups_before_they_are_used():
    code = (
        "import sys, ray, ray.util, ray.actor, ray.remote_function; "
        "assert 'ray.util.placement_group' not in sys.modules; "
        "assert 'ray._private.group_arguments' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_module_is_a_module_of_its_name():
    module = importlib.import_module("ray.util.placement_group")
    assert module.placement_group is ray.util.placement_group is placement_group
    for name in module.__all__:
        assert getattr(module, name) is not None
