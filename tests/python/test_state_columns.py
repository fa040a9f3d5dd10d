"""The columns of Python's entries are those of the state API (observability/state/columns.cc), in
the same order."""

import dataclasses
import json

import ray
from ray import _raylet
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.state.api import resolve_address
from ray.util.state.common import StateResource, resource_to_schema
from waiting import until


@ray.remote
class Actor:
    def method(self):
        return 1


def test_entries_have_the_columns_of_rows(cluster):
    actor = Actor.options(runtime_env={"env_vars": {"a": "b"}}).remote()
    ray.get(actor.method.remote())
    group = placement_group([{"CPU": 1}])
    held = ray.put(b"held")
    for resource in StateResource:

        def row(resource=resource):
            answer = _raylet.state_query(
                resolve_address(None), resource.value, False, [], 1, True, False, 10.0
            )
            return json.loads(answer)["result"]

        [found] = until(row, len)
        columns = [column.name for column in dataclasses.fields(resource_to_schema(resource))]
        assert list(found) == columns, resource
    remove_placement_group(group)
    del held
