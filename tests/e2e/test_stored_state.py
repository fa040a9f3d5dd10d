"""A head of today goes on with everything that a head of an earlier release has stored."""

import json
import pathlib
import shutil

import pytest
from cluster import cluster
from stored_state import COUNTED, NAMESPACE, SUBMISSION
from waiting import until

import ray
from ray import _raylet
from ray.util.state import list_actors, list_placement_groups, list_tasks

STATES = sorted(path for path in (pathlib.Path(__file__).parent / "stored_states").iterdir())


@pytest.mark.parametrize("stored", STATES, ids=lambda path: path.name)
def test_a_head_goes_on_with_the_state_of_a_release(stored, tmp_path):
    state = tmp_path / "state"
    shutil.copytree(stored, state)
    with cluster(cpus=2, connect=False, state_dir=state) as c:
        assert "goes on" in c.output
        ray.init(address=c.address, namespace=NAMESPACE, log_to_driver=False)
        assert _raylet.kv_get(NAMESPACE, "key") == b"value"
        (job,) = json.loads(
            c.shell.ok(
                "list",
                "jobs",
                f"--address={c.address}",
                "--format=json",
                "--detail",
                f"--filter=submission_id={SUBMISSION}",
            )
        )
        assert (job["status"], job["metadata"]) == ("SUCCEEDED", {"kept": "yes"})
        (task,) = list_tasks(filters=[("name", "=", "added")])
        assert task.state == "FINISHED"
        killed = until(
            lambda: list_actors(filters=[("name", "=", "killed")], detail=True),
            lambda found: [actor.state for actor in found] == ["DEAD"],
        )
        assert killed[0].death_cause["actor_died_error_context"]["reason"] == "RAY_KILL"
        # The node of the actor and the group is gone with its release, so both are placed anew.
        kept = ray.get_actor("kept")
        assert (
            ray.get(kept.most_common.options(max_task_retries=-1).remote(), timeout=60) == COUNTED
        )
        until(
            lambda: list_placement_groups(filters=[("name", "=", "group")]),
            lambda found: [group.state for group in found] == ["CREATED"],
        )
