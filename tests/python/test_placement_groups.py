"""Placement groups on clusters: their lives, and what runs in them."""

import os
import pickle
import subprocess
import sys
import threading
import time

import pytest
from own_daemons import stopped_for
from waiting import touch, until, wait_for

import ray
from ray.exceptions import (
    ActorDiedError,
    ActorUnschedulableError,
    GetTimeoutError,
    RaySystemError,
    TaskCancelledError,
    TaskPlacementGroupRemoved,
    WorkerCrashedError,
)
from ray.util.placement_group import (
    PlacementGroup,
    get_current_placement_group,
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def in_group(group, index=-1, capture=None):
    return {"scheduling_strategy": PlacementGroupSchedulingStrategy(group, index, capture)}


def cpus_free():
    return ray.available_resources().get("CPU", 0)


@pytest.fixture(autouse=True)
def all_cpus_are_free(cluster):
    """Each test begins when the groups of earlier tests are gone."""
    until(lambda: cpus_free() == 4)


@pytest.fixture
def make(cluster):
    """Yields placement_group(), but removes its groups after the test."""
    made = []

    def make(*args, **options):
        made.append(placement_group(*args, **options))
        return made[-1]

    yield make
    for group in made:
        remove_placement_group(group)


@ray.remote
def ping():
    return os.getpid()


@ray.remote(max_retries=0)
def block(path):
    touch(path)
    threading.Event().wait()


@ray.remote
class Actor:
    def pid(self):
        return os.getpid()

    def block(self, path):
        touch(path)
        threading.Event().wait()


def test_a_group_is_created_and_removed(make):
    group = make([{"CPU": 1}, {"CPU": 2, "thing": 0.5}], strategy="STRICT_PACK")
    assert group.wait(30) is True and group.wait(0) is True
    assert group.bundle_specs == [{"CPU": 1.0}, {"CPU": 2.0, "thing": 0.5}]
    assert (group.bundle_count, group.is_empty) == (2, False)
    assert group.id.binary()[14:] == ray.get_runtime_context().job_id.binary()
    until(lambda: cpus_free() == 1)
    assert ray.cluster_resources()["CPU"] == 4
    assert not [name for name in ray.cluster_resources() if "group" in name]
    remove_placement_group(group)
    until(lambda: cpus_free() == 4)
    assert remove_placement_group(group) is None
    with pytest.raises(Exception, match="does not exist"):
        group.wait(10)


def test_ready_gives_the_group(make):
    group = make([{"CPU": 1}])
    found = ray.get(group.ready(), timeout=120)
    assert found == group and found.bundle_specs == [{"CPU": 1.0}]
    ready, rest = ray.wait([group.ready()], timeout=120)
    assert len(ready) == 1 and not rest
    assert ray.get(PlacementGroup.empty().ready()).is_empty


def test_a_group_that_finds_no_room_waits(make):
    group = make([{"CPU": 4}])
    assert group.wait(30)
    second = make([{"CPU": 1}])
    ready = second.ready()
    assert second.wait(0.2) is False and second.wait(0) is False
    assert placement_group_table(second)["state"] == "PENDING"
    with pytest.raises(GetTimeoutError):
        ray.get(ready, timeout=0.2)
    remove_placement_group(group)
    assert second.wait(30)
    assert ray.get(ready, timeout=120) == second


def test_an_infeasible_group_waits_and_says_so(make):
    group = make([{"CPU": 50}])
    assert group.wait(0.2) is False
    until(lambda: placement_group_table(group)["stats"]["scheduling_state"] == "INFEASIBLE")
    ready = group.ready()
    ray.cancel(ready)
    with pytest.raises(TaskCancelledError):
        ray.get(ready, timeout=120)


def test_ready_of_a_removed_group(make):
    group = make([{"CPU": 50}])
    ready = group.ready()
    remove_placement_group(group)
    for ref in (ready, group.ready()):
        with pytest.raises(TaskPlacementGroupRemoved, match="has been removed"):
            ray.get(ref, timeout=120)


def test_a_wait_ends_when_the_group_is_removed(make):
    group = make([{"CPU": 50}])
    timer = threading.Timer(0.2, remove_placement_group, [group])
    timer.start()
    with pytest.raises(Exception, match="does not exist"):
        group.wait(60)
    timer.join()


def test_an_unknown_group_is_waited_for(cluster):
    unknown = PlacementGroup(ray.PlacementGroupID.from_random())
    begun = time.monotonic()
    assert unknown.wait(0.3) is False
    assert time.monotonic() - begun >= 0.3
    assert placement_group_table(unknown) == {}
    assert remove_placement_group(unknown) is None
    with pytest.raises(KeyError):
        unknown.bundle_specs


def test_a_wait_in_a_thread_and_many_groups(make):
    groups = [make([{"thing": 0.01}]) for _ in range(50)]
    waits = []
    threads = [
        threading.Thread(target=lambda g=group: waits.append(g.wait(30))) for group in groups[:5]
    ]
    for thread in threads:
        thread.start()
    assert all(group.wait(30) for group in groups)
    for thread in threads:
        thread.join()
    assert waits == [True] * 5
    assert len({group.id for group in groups}) == 50


def test_ctrl_c_interrupts_a_wait(make):
    code = """
import _thread, threading, ray
ray.init(address="auto", log_to_driver=False)
group = ray.util.placement_group([{"CPU": 50}])
try:
    # On a busy machine the timer may ring before this thread goes on.
    threading.Timer(0.5, _thread.interrupt_main).start()
    group.wait(60)
    print("waited")
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "interrupted", done.stdout + done.stderr


def test_a_name_finds_its_group_until_the_group_is_removed(make):
    group = make([{"CPU": 1}], name="mine")
    found = get_placement_group("mine")
    assert found == group and found.bundle_specs == [{"CPU": 1.0}]
    with pytest.raises(RaySystemError, match="'mine' already exists"):
        placement_group([{"CPU": 1}], name="mine")
    remove_placement_group(group)

    def gone():
        try:
            get_placement_group("mine")
        except ValueError as error:
            assert "Failed to look up placement group with name: mine" in str(error)
            return True

    until(gone)
    assert make([{"CPU": 1}], name="mine") != group


@pytest.mark.parametrize(
    "name, error", [("", ValueError), (None, ValueError), ("none", ValueError), (5, TypeError)]
)
def test_names_that_are_not_found(cluster, name, error):
    with pytest.raises(error):
        get_placement_group(name)


def test_placement_group_table_describes_a_group(make):
    group = make([{"CPU": 1, "thing": 0}, {"CPU": 1}], name="shown", strategy="SPREAD")
    assert group.wait(30)
    entry = placement_group_table(group)
    node = ray.get_runtime_context().get_node_id()
    assert entry.pop("stats").keys() == {
        "end_to_end_creation_latency_ms",
        "scheduling_latency_ms",
        "scheduling_attempt",
        "highest_retry_delay_ms",
        "scheduling_state",
    }
    assert entry == {
        "placement_group_id": group.id.hex(),
        "name": "shown",
        "bundles": {0: {"CPU": 1.0}, 1: {"CPU": 1.0}},
        "bundles_to_node_id": {0: node, 1: node},
        "strategy": "SPREAD",
        "state": "CREATED",
    }
    stats = placement_group_table(group)["stats"]
    assert stats["scheduling_state"] == "FINISHED" and stats["scheduling_attempt"] >= 1
    assert stats["end_to_end_creation_latency_ms"] > 0
    assert placement_group_table()[group.id.hex()]["name"] == "shown"
    remove_placement_group(group)
    until(lambda: placement_group_table(group)["state"] == "REMOVED")
    assert placement_group_table(group)["stats"]["scheduling_state"] == "REMOVED"


def test_tasks_share_what_their_bundle_holds(make, tmp_path):
    group = make([{"CPU": 1}, {"CPU": 1}])
    path = str(tmp_path / "begun")
    holder = block.options(**in_group(group, 0)).remote(path)
    wait_for(path)
    waiting = ping.options(**in_group(group, 0)).remote()
    assert ray.get(ping.options(**in_group(group, 1)).remote(), timeout=120)
    assert ray.get(ping.options(**in_group(group)).remote(), timeout=120)
    assert ray.wait([waiting], timeout=0.2)[0] == []
    ray.cancel(holder, force=True)
    assert ray.get(waiting, timeout=120)


def test_a_bundle_is_there_however_full_the_node_is(make, tmp_path):
    group = make([{"CPU": 1}])
    assert group.wait(30)
    path = str(tmp_path / "begun")
    holder = block.options(num_cpus=3).remote(path)
    wait_for(path)
    outside = ping.remote()
    assert ray.get(ping.options(**in_group(group)).remote(), timeout=120)
    assert ray.wait([outside], timeout=0.2)[0] == []
    ray.cancel(holder, force=True)
    assert ray.get(outside, timeout=120)


def test_what_a_task_in_a_group_sees(make):
    group = make([{"CPU": 2}])

    @ray.remote(num_cpus=0.5)
    def look():
        context = ray.get_runtime_context()
        current = get_current_placement_group()
        return (
            current,
            current.bundle_specs,
            context.get_placement_group_id(),
            context.current_placement_group_id,
            context.should_capture_child_tasks_in_placement_group,
            context.get_assigned_resources(),
        )

    for capture in (None, False, True):
        seen = ray.get(look.options(**in_group(group, 0, capture)).remote(), timeout=120)
        assert seen == (
            group,
            [{"CPU": 2.0}],
            group.id.hex(),
            group.id,
            bool(capture),
            {"CPU": 0.5},
        )
    assert get_current_placement_group() is None
    context = ray.get_runtime_context()
    assert context.get_placement_group_id() is None
    assert context.should_capture_child_tasks_in_placement_group is False


def test_what_an_actor_in_a_group_sees(make):
    group = make([{"CPU": 1}])

    @ray.remote
    class Look:
        def __init__(self):
            self.first = get_current_placement_group()

        def look(self):
            found = []
            thread = threading.Thread(target=lambda: found.append(get_current_placement_group()))
            thread.start()
            thread.join()
            resources = ray.get_runtime_context().get_assigned_resources()
            return self.first, get_current_placement_group(), found[0], resources

        async def later(self):
            return get_current_placement_group()

    actor = Look.options(**in_group(group, 0)).remote()
    assert ray.get(actor.look.remote(), timeout=120) == (group, group, group, {})
    assert ray.get(actor.later.remote(), timeout=120) == group


def test_a_handle_travels(make):
    @ray.remote(num_cpus=0)
    def use(group):
        assert group.wait(30)
        inside = ray.get(ping.options(**in_group(group)).remote())
        return group, ray.get(group.ready()), inside > 0

    group = make([{"CPU": 1}])
    assert ray.get(use.remote(group), timeout=60) == (group, group, True)
    assert pickle.loads(pickle.dumps(group)) == group


def test_removal_kills_tasks(make, tmp_path):
    group = make([{"CPU": 1}])
    path = str(tmp_path / "begun")
    running = block.options(**in_group(group)).remote(path)
    wait_for(path)
    waiting = ping.options(**in_group(group)).remote()
    remove_placement_group(group)
    with pytest.raises(WorkerCrashedError):
        ray.get(running, timeout=120)
    with pytest.raises(TaskPlacementGroupRemoved):
        ray.get(waiting, timeout=120)
    until(lambda: cpus_free() == 4)
    late = ping.options(**in_group(group)).remote()
    assert ray.wait([late], timeout=0.5)[0] == []
    ray.cancel(late)
    with pytest.raises(TaskCancelledError):
        ray.get(late, timeout=120)


@pytest.mark.parametrize("options", [{}, {"max_restarts": -1}, {"lifetime": "detached"}])
def test_removal_kills_actors(make, tmp_path, options):
    group = make([{"CPU": 1}])
    actor = Actor.options(**in_group(group), **options).remote()
    pid = ray.get(actor.pid.remote(), timeout=120)
    path = str(tmp_path / "begun")
    call = actor.block.remote(path)
    wait_for(path)
    remove_placement_group(group)
    with pytest.raises(ActorDiedError, match="placement group was removed"):
        ray.get(call, timeout=120)
    with pytest.raises(ActorDiedError, match="placement group was removed"):
        ray.get(actor.pid.remote(), timeout=120)
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_removal_ends_actors_that_wait(make):
    group = make([{"CPU": 1}])
    first = Actor.options(num_cpus=1, **in_group(group)).remote()
    assert ray.get(first.pid.remote(), timeout=120)
    second = Actor.options(num_cpus=1, **in_group(group)).remote()
    call = second.pid.remote()
    assert ray.wait([call], timeout=0.2)[0] == []
    remove_placement_group(group)
    with pytest.raises(ActorUnschedulableError, match="placement group.*removed"):
        ray.get(call, timeout=120)
    late = Actor.options(**in_group(group)).remote()
    with pytest.raises(ActorUnschedulableError, match="placement group.*removed"):
        ray.get(late.pid.remote(), timeout=120)


def test_an_actor_restarts_in_its_bundle(make):
    group = make([{"CPU": 1}, {"CPU": 1}])
    actor = Actor.options(
        num_cpus=1, max_restarts=1, max_task_retries=-1, **in_group(group, 1)
    ).remote()
    pid = ray.get(actor.pid.remote(), timeout=120)
    os.kill(pid, 9)
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    assert ray.get(actor.pid.remote(), timeout=60) != pid
    assert ray.get(ping.options(**in_group(group, 0)).remote(), timeout=120)
    waiting = ping.options(**in_group(group, 1)).remote()
    assert ray.wait([waiting], timeout=0.2)[0] == []


PROGRAM = """
import ray
ray.init(address="auto", namespace="other", log_to_driver=False)
for options in ({"name": "plain"}, {"name": "kept", "lifetime": "detached"}):
    group = ray.util.placement_group([{"CPU": 1}], **options)
    assert group.wait(30)
print(ray.util.get_placement_group("kept").id.hex())
"""


def test_a_group_ends_with_its_job_unless_it_is_detached(cluster):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    kept = PlacementGroup(ray.PlacementGroupID.from_hex(done.stdout.strip()))

    def states():
        table = placement_group_table().values()
        return {entry["name"]: entry["state"] for entry in table if entry["name"] in names}

    names = {"plain", "kept"}
    until(lambda: states() == {"plain": "REMOVED", "kept": "CREATED"})
    with pytest.raises(ValueError):
        # The group is in another namespace.
        get_placement_group("kept")
    assert ray.get(ping.options(**in_group(kept)).remote(), timeout=120)
    remove_placement_group(kept)


MAKER = """
import ray
ray.init(address="auto", namespace="makers", log_to_driver=False)

@ray.remote(num_cpus=0, lifetime="detached", name="maker")
class Maker:
    def make(self):
        self.group = ray.util.placement_group([{"CPU": 1}])
        assert self.group.wait(30)
        return self.group.id.hex()

print(ray.get(Maker.remote().make.remote()))
"""


def test_a_group_ends_with_the_detached_actor_that_made_it(cluster):
    done = subprocess.run(
        [sys.executable, "-c", MAKER], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    group = PlacementGroup(ray.PlacementGroupID.from_hex(done.stdout.strip()))
    job = group.id.hex()[-8:]
    until(lambda: [job for j in ray._private.state.jobs() if j["JobID"] == job and j["IsDead"]])
    assert placement_group_table(group)["state"] == "CREATED"
    ray.kill(ray.get_actor("maker", "makers"))
    until(lambda: placement_group_table(group)["state"] == "REMOVED")


def test_a_group_outlives_an_actor_of_its_job(cluster):
    @ray.remote(num_cpus=0)
    class Maker:
        def make(self):
            self.group = placement_group([{"CPU": 1}])
            return self.group, os.getpid()

    maker = Maker.remote()
    group, pid = ray.get(maker.make.remote(), timeout=60)
    ray.kill(maker)
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    with pytest.raises(ActorDiedError):
        ray.get(maker.make.remote(), timeout=60)
    assert ray.get(ping.options(**in_group(group)).remote(), timeout=120)
    remove_placement_group(group)


def test_creation_does_not_wait_for_the_cluster(make):
    # The first call connects to the head.
    make([{"thing": 0.001}])
    with stopped_for(60, "ray-head") as goes_on:
        groups = [make([{"thing": 0.001}]) for _ in range(200)]
        waited = goes_on.is_set()
    assert not waited and all(group.wait(60) for group in groups)
