"""ray.util.state on one node: lists, entries, filters, summaries; ray._private.state and
internal_api; where objects are."""

import json
import os
import subprocess
import sys
import time

import pytest
import ray
from ray._private import internal_api
from ray.exceptions import RuntimeEnvSetupError
from ray.util import state
from ray.util.state.common import (
    GetApiOptions,
    ListApiOptions,
    StateResource,
    SummaryApiOptions,
    SummaryResource,
    resource_to_schema,
)
from ray.util.state.exception import RayStateApiException, ServerUnavailable
from gate import Gate
from waiting import until


@ray.remote
def worked():
    return 1


@ray.remote
class Actor:
    def method(self):
        return os.getpid()


@ray.remote
def wait_at(gate):
    ray.get(gate.wait.remote())


def test_nodes_workers_and_jobs(cluster):
    [node] = state.list_nodes(detail=True)
    assert (node.state, node.is_head_node, node["node_id"]) == (
        "ALIVE",
        True,
        ray.get_runtime_context().get_node_id(),
    )
    assert node.resources_total["CPU"] == 4 and node.start_time_ms > 0
    assert state.get_node(node.node_id) == node
    driver = state.get_worker(ray.get_runtime_context().get_worker_id())
    assert (driver.worker_type, driver.is_alive, driver.pid, driver.node_id) == (
        "DRIVER",
        True,
        os.getpid(),
        node.node_id,
    )
    assert (
        until(
            lambda: [worker for worker in state.list_workers() if worker.worker_type == "WORKER"],
            len,
        )[0].pid
        > 0
    )
    [job] = state.list_jobs(filters=[("job_id", "=", ray.get_runtime_context().get_job_id())])
    assert (
        repr((job.type, job.status))
        == "(<JobType.DRIVER: 'DRIVER'>, <JobStatus.RUNNING: 'RUNNING'>)"
    )
    assert job.driver_info["pid"] == str(os.getpid())


def test_a_worker_that_ended_says_how(cluster):
    @ray.remote(max_retries=0)
    def die():
        os._exit(3)

    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(die.remote())
    [worker] = until(
        lambda: state.list_workers(
            filters=[("is_alive", "=", False), ("exit_type", "=", "SYSTEM_ERROR")], detail=True
        ),
        len,
    )
    assert "code 3" in worker.exit_detail and worker.end_time_ms >= worker.start_time_ms > 0
    [task] = until(
        lambda: state.list_tasks(
            filters=[("func_or_class_name", "!=", "x"), ("error_type", "=", "WORKER_DIED")],
            detail=True,
        ),
        len,
    )
    assert (task.state, task.attempt_number) == ("FAILED", 0) and "died" in task.error_message


def test_actors(cluster):
    named = Actor.options(name="mine", num_cpus=0.5).remote()
    pid = ray.get(named.method.remote())
    [found] = state.list_actors(filters=[("name", "=", "mine")])
    assert (found.class_name, found.state, found.pid, found.is_detached) == (
        "Actor",
        "ALIVE",
        pid,
        None,
    )
    full = state.get_actor(named._actor_id.hex())
    assert (
        full.required_resources == {"CPU": 0.5}
        and full.is_detached is False
        and full.num_restarts == 0
    )
    ray.kill(named)
    dead = until(
        lambda: state.get_actor(named._actor_id.hex()), lambda actor: actor.state == "DEAD"
    )
    assert dead.death_cause["actor_died_error_context"]["reason"] == "RAY_KILL"
    assert state.get_actor("ff" * 16) is None
    counts = state.summarize_actors()["cluster"]
    assert (
        counts["summary"]["Actor"]["state_counts"]["DEAD"] >= 1 and counts["summary_by"] == "class"
    )


def test_tasks_from_submission_to_their_end(cluster):
    gate = Gate.remote()
    first = wait_at.options(name="first", num_cpus=4).remote(gate)
    second = wait_at.options(name="second", num_cpus=4).remote(gate)
    third = worked.options(name="third").remote()

    @ray.remote
    def after(value):
        return value

    fourth = after.options(name="fourth").remote(first)

    def states():
        return {
            task.name: task.state
            for task in state.list_tasks()
            if task.name in ("first", "second", "fourth")
        }

    until(
        lambda: set(states().items()),
        lambda seen: (
            seen
            >= {
                ("first", "RUNNING"),
                ("second", "PENDING_NODE_ASSIGNMENT"),
                ("fourth", "PENDING_ARGS_AVAIL"),
            }
            or seen >= {("second", "RUNNING"), ("fourth", "PENDING_ARGS_AVAIL")}
        ),
    )
    [running] = until(
        lambda: state.list_tasks(
            filters=[("name", "=", "first"), ("state", "=", "running")], detail=True
        ),
        len,
    )
    assert (
        running.required_resources == {"CPU": 4.0} and running.worker_pid and running.start_time_ms
    )
    assert running.parent_task_id
    gate.open.remote()
    ray.get([first, second, third, fourth])
    until(states, lambda seen: seen == dict.fromkeys(("first", "second", "fourth"), "FINISHED"))
    entry = state.get_task(first)
    assert (
        entry.task_id == first.task_id().hex()
        and entry.node_id == ray.get_runtime_context().get_node_id()
    )
    logs = os.path.join(ray._private.worker.global_worker.context["session_dir"], "logs")
    assert all(
        os.path.exists(os.path.join(logs, entry.task_log_info[name]))
        for name in ("stdout_file", "stderr_file")
    )
    assert entry.end_time_ms >= entry.start_time_ms and [
        event["state"] for event in entry.events
    ] == ["PENDING_ARGS_AVAIL", "RUNNING", "FINISHED"]
    summary = state.summarize_tasks()["cluster"]
    assert summary["summary"]["first"] == {
        "func_or_class_name": "first",
        "type": "NORMAL_TASK",
        "state_counts": {"FINISHED": 1},
    }


def test_what_has_not_ended_knows_when_and_by_whom_it_was_made(cluster):
    @ray.remote(num_cpus=0)
    class Slow:
        def __init__(self, gate):
            ray.get(gate.wait.remote())

        def touch(self):
            return 1

    @ray.remote(num_cpus=0)
    def maker(gate):
        return ray.get(Slow.remote(gate).touch.remote())

    def tasks(**wanted):
        return state.list_tasks(
            filters=[(key, "=", value) for key, value in wanted.items()], detail=True
        )

    gate = Gate.remote()
    ref = maker.remote(gate)
    task, driver = ref.task_id().hex(), "ff" * 20 + ray.get_runtime_context().get_job_id()
    [made] = until(
        lambda: tasks(type="ACTOR_CREATION_TASK", parent_task_id=task, state="RUNNING"), len
    )
    [running] = tasks(task_id=task, state="RUNNING")
    assert (
        running.parent_task_id == driver
        and 0
        < running.creation_time_ms
        <= running.start_time_ms
        <= made.creation_time_ms
        <= made.start_time_ms
    )
    assert [event["state"] for event in running.events] == ["PENDING_ARGS_AVAIL", "RUNNING"]
    [call] = tasks(type="ACTOR_TASK", parent_task_id=task)
    assert call.creation_time_ms >= made.creation_time_ms and call.start_time_ms is None
    env = {"env_vars": {"HOMELESS": "yes"}}
    homeless = Slow.options(resources={"nowhere": 1}, runtime_env=env).remote(gate)
    [waiting] = until(lambda: tasks(actor_id=homeless._actor_id.hex()), len)
    assert (waiting.state, waiting.parent_task_id) == (
        "PENDING_NODE_ASSIGNMENT",
        driver,
    ) and waiting.creation_time_ms >= made.creation_time_ms
    assert json.loads(waiting.runtime_env_info["serialized_runtime_env"]) == env
    ray.get(gate.open.remote())
    assert ray.get(ref) == 1
    [ended] = until(
        lambda: tasks(type="ACTOR_CREATION_TASK", parent_task_id=task, state="FINISHED"), len
    )
    assert (ended.task_id, ended.creation_time_ms) == (made.task_id, made.creation_time_ms)


def test_attempts_of_a_task_are_a_list(cluster):
    @ray.remote(max_retries=1, retry_exceptions=True)
    def twice():
        raise ValueError("x")

    ref = twice.remote()
    with pytest.raises(ValueError):
        ray.get(ref)
    attempts = until(
        lambda: state.get_task(ref.task_id().hex()), lambda found: isinstance(found, list)
    )
    assert [(a.attempt_number, a.state, a.error_type) for a in attempts] == [
        (n, "FAILED", "TASK_EXECUTION_EXCEPTION") for n in (0, 1)
    ]
    assert state.get_task("ff" * 24) is None


def test_a_running_task_that_was_cancelled_says_so(cluster):
    @ray.remote(max_retries=0)
    def endless(begun):
        ray.get(begun.open.remote())
        while True:
            time.sleep(0.01)

    begun = Gate.remote()
    ref = endless.remote(begun)
    ray.get(begun.wait.remote())
    ray.cancel(ref)
    with pytest.raises(ray.exceptions.TaskCancelledError):
        ray.get(ref)
    task = until(
        lambda: state.get_task(ref.task_id().hex()), lambda found: found and found.state == "FAILED"
    )
    assert task.error_type == "TASK_CANCELLED" and "was cancelled" in task.error_message


def test_objects(cluster):
    big = ray.put(bytes(1_000_000))
    gate = Gate.remote()
    inner = ray.put(1)
    outer = ray.put([inner])
    del inner

    @ray.remote
    def hold(value, gate):
        ray.get(gate.wait.remote())

    pending = hold.remote(big, gate)
    [entry] = [e for e in state.get_objects(big.hex()) if e.type == "DRIVER"]
    assert (entry.object_size >= 1_000_000, entry.task_status, entry.attempt_number, entry.pid) == (
        True,
        "FINISHED",
        1,
        os.getpid(),
    )
    assert entry.reference_type == "USED_BY_PENDING_TASK"
    mine = {e.object_id: e for e in state.list_objects(filters=[("pid", "=", os.getpid())])}
    assert mine[outer.hex()].reference_type == "LOCAL_REFERENCE"
    assert "CAPTURED_IN_OBJECT" in {e.reference_type for e in mine.values()}
    assert mine[pending.hex()].object_size == -1 and mine[pending.hex()].task_status != "FINISHED"
    assert any(e.reference_type == "ACTOR_HANDLE" for e in mine.values())
    assert state.summarize_objects()["cluster"]["total_objects"] >= len(mine)
    gate.open.remote()
    ray.get(pending)


def test_filters_limit_and_detail(cluster):
    ray.get([worked.remote() for _ in range(5)])
    until(
        lambda: state.list_tasks(filters=[("name", "=", "worked")]), lambda found: len(found) >= 5
    )
    assert len(state.list_tasks(filters=[("name", "=", "WORKED")], limit=2)) == 2
    assert state.list_tasks(limit=0) == []
    assert state.list_nodes(filters=[("state", "=", "ALIVE"), ("state", "=", "DEAD")]) == []
    assert state.list_nodes()[0].start_time_ms is None
    for call, kind, text in (
        (
            lambda: state.list_nodes(filters=[("colour", "=", "x")]),
            RayStateApiException,
            "Supported filter columns",
        ),
        (
            lambda: state.list_tasks(filters=[("colour", "=", "x")]),
            RayStateApiException,
            "Supported filter columns",
        ),
        (
            lambda: state.list_tasks(filters=[("worker_pid", "=", "x")]),
            RayStateApiException,
            "integer",
        ),
        (
            lambda: state.list_nodes(filters=[("state", ">", "x")]),
            ValueError,
            "Available predicates: =, !=",
        ),
        (lambda: state.list_nodes(filters="state=ALIVE"), ValueError, "list"),
        (lambda: state.list_nodes(filters=[("state", "=")]), ValueError, "key"),
        (lambda: state.list_nodes(limit=10_001), RayStateApiException, "10000"),
        (lambda: state.list_nodes(limit="many"), ValueError, "integer"),
        (lambda: state.list_nodes(timeout=None), ValueError, "integer"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_entries_are_attributes_and_items(cluster):
    [node] = state.list_nodes()
    assert node["state"] == node.state == node.get("state") and node.get("colour", 5) == 5
    assert node.asdict()["node_id"] == node.node_id
    with pytest.raises(AttributeError):
        node["colour"]
    for resource in StateResource:
        assert resource_to_schema(resource).columns()


def test_the_client(cluster):
    client = state.StateApiClient()
    [node] = client.list(StateResource.NODES, ListApiOptions(), True)
    assert ray.experimental.state.list_nodes is state.list_nodes
    assert client.get(StateResource.NODES, node.node_id, GetApiOptions()).node_id == node.node_id
    assert (
        "total_actors"
        in client.summary(SummaryResource.ACTORS, options=SummaryApiOptions())["cluster"]
    )
    tree = client.summary(SummaryResource.TASKS, options=SummaryApiOptions(summary_by="lineage"))[
        "cluster"
    ]
    assert tree["summary_by"] == "lineage" and {
        "name",
        "key",
        "type",
        "state_counts",
        "children",
        "link",
        "timestamp",
    } == set(tree["summary"][0])
    with pytest.raises(NotImplementedError, match="by nothing"):
        client.summary(SummaryResource.TASKS, options=SummaryApiOptions(summary_by="nothing"))


def test_what_cannot_exist_is_empty(cluster):
    assert state.list_placement_groups() == [] and state.get_placement_group("ff" * 18) is None
    assert state.get_job("raysubmit_none") is None
    [joined] = [
        event
        for event in state.list_cluster_events(detail=True)
        if event.message.endswith("has joined")
    ]
    assert (joined.severity, joined.source_type, joined.custom_fields["node_id"]) == (
        "INFO",
        "GCS",
        ray.get_runtime_context().get_node_id(),
    )
    assert (
        state.list_cluster_events(filters=[("event_id", "=", joined.event_id)])[0].time
        == joined.time
    )
    with pytest.raises(ServerUnavailable, match="does not answer"):
        state.list_nodes(address="http://127.0.0.1:1")


def test_runtime_environments(cluster):
    @ray.remote
    def colour():
        return os.environ["COLOUR"]

    good, bad = {"env_vars": {"COLOUR": "green"}}, {"working_dir": "file:///nowhere/none.zip"}
    assert ray.get(colour.options(runtime_env=good).remote()) == "green"
    with pytest.raises(RuntimeEnvSetupError):
        ray.get(colour.options(runtime_env=bad).remote())
    [made] = state.list_runtime_envs(
        filters=[("runtime_env", "=", json.dumps(good, separators=(",", ":")))], detail=True
    )
    assert (made.runtime_env, made.success, made.node_id, made.ref_cnt, made.error) == (
        good,
        True,
        ray.get_runtime_context().get_node_id(),
        1,
        None,
    )
    assert made.creation_time_ms > 0
    [failed] = [
        env
        for env in state.list_runtime_envs(filters=[("success", "=", False)], detail=True)
        if env.runtime_env == bad
    ]
    assert failed.ref_cnt == 0 and "none.zip" in failed.error
    [short] = state.list_runtime_envs(
        filters=[
            ("success", "!=", "false"),
            ("runtime_env", "=", json.dumps(good, separators=(",", ":"))),
        ]
    )
    assert (short.runtime_env, short.success) == (good, True) and len(
        state.list_runtime_envs(limit=1)
    ) == 1
    with pytest.raises(RayStateApiException, match="Supported filter columns"):
        state.list_runtime_envs(filters=[("ref_cnt", "=", 1)])


def test_what_ended_is_known_with_its_parent_and_what_it_asked_for(cluster):
    @ray.remote(num_cpus=0.5)
    def outer():
        ray.get([inner.remote() for _ in range(3)])
        return ray.get_runtime_context().get_task_id()

    @ray.remote(num_cpus=0.25, resources={})
    def inner():
        return 1

    task = ray.get(outer.remote())
    children = until(
        lambda: state.list_tasks(filters=[("parent_task_id", "=", task)], detail=True),
        lambda rows: len(rows) == 3 and all(row.state == "FINISHED" for row in rows),
    )
    assert all((row.name, row.required_resources) == ("inner", {"CPU": 0.25}) for row in children)
    [parent] = until(
        lambda: state.list_tasks(filters=[("task_id", "=", task)], detail=True),
        lambda rows: [row.state for row in rows] == ["FINISHED"],
    )
    assert (
        parent.required_resources == {"CPU": 0.5}
        and parent.parent_task_id == "ff" * 20 + ray.get_runtime_context().get_job_id()
    )
    assert all(
        parent.start_time_ms
        <= row.creation_time_ms
        <= row.start_time_ms
        <= row.end_time_ms
        <= parent.end_time_ms
        for row in children
    )


def test_a_program_that_is_not_connected(cluster):
    address = ray._private.worker.global_worker.context["head_address"]
    code = (
        "import sys\nfrom ray.util.state import list_nodes, list_tasks, list_objects\n"
        "print([n.state for n in list_nodes(address=sys.argv[1])], len(list_objects(address=sys.argv[1])) > 0)\n"
    )
    ref = ray.put(1)
    done = subprocess.run(
        [sys.executable, "-c", code, address],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "['ALIVE'] True\n", done.stderr
    del ref
    with pytest.raises(ServerUnavailable):
        state.list_nodes(address="127.0.0.1:1", timeout=2)


def test_a_wrong_token_over_http(cluster, monkeypatch):
    address = f"http://{cluster.dashboard_url}"
    assert len(state.list_nodes(address=address)) == 1
    monkeypatch.setenv("RAY_AUTH_TOKEN", "f" * 64)
    with pytest.raises(
        RayStateApiException,
        match=r"^http\S* refuses the token \(Forbidden: Invalid authentication token\): set RAY_AUTH_TOKEN .*$",
    ):
        state.list_nodes(address=address)


def test_questions_of_a_task(cluster):
    @ray.remote
    def ask():
        return [node.state for node in state.list_nodes()]

    assert ray.get(ask.remote()) == ["ALIVE"]


def test_private_state(cluster):
    actor = Actor.options(name="private").remote()
    pid = ray.get(actor.method.remote())
    entry = ray._private.state.actors(actor._actor_id.hex())
    assert (entry["State"], entry["Name"], entry["Pid"], entry["Address"]["NodeID"]) == (
        "ALIVE",
        "private",
        pid,
        ray.get_runtime_context().get_node_id(),
    )
    assert ray._private.state.actors()[entry["ActorID"]] == entry
    assert ray._private.state.actors("ff" * 16) == {}
    assert any(
        job["DriverPid"] == os.getpid() and not job["IsDead"] for job in ray._private.state.jobs()
    )
    assert any(
        set(worker) == {"node_ip_address", "plasma_store_socket"}
        for worker in ray._private.state.workers().values()
    )


def test_memory_summary(cluster):
    ref = ray.put(bytes(2_000_000))
    text = internal_api.memory_summary(units="MB")
    [line] = [line for line in text.splitlines() if line.endswith(ref.hex())]
    assert "Summary for node address: " in text and " | 2.0000" in line and line.count(" | ") == 8
    assert internal_api.memory_summary(stats_only=True).startswith(
        "--- Aggregate object store stats across all nodes ---\nPlasma memory usage "
    )
    with pytest.raises(ValueError, match="GB"):
        internal_api.memory_summary(units="TB")
    with pytest.raises(NotImplementedError, match="global_gc"):
        internal_api.global_gc()
    with pytest.raises(NotImplementedError, match="free"):
        internal_api.free([])


def test_locations(cluster):
    from ray.experimental import get_local_object_locations, get_object_locations

    here = ray.get_runtime_context().get_node_id()
    gate = Gate.remote()
    big, small, pending = ray.put(bytes(1_000_000)), ray.put(1), wait_at.remote(gate)
    found = get_object_locations([big, small, pending])
    assert (
        found[big]["node_ids"] == [here]
        and found[big]["object_size"] >= 1_000_000
        and found[big]["did_spill"] is False
    )
    assert found[small]["node_ids"] == [] and found[small]["object_size"] > 0
    assert found[pending] == {"node_ids": [], "object_size": None, "did_spill": False}
    assert get_local_object_locations([big]) == {big: found[big]} and get_object_locations([]) == {}

    # The process of this task asks the owner of the references.
    @ray.remote
    def elsewhere(refs):
        return [get_object_locations(refs)[ref] for ref in refs]

    assert ray.get(elsewhere.remote([big, pending])) == [found[big], found[pending]]
    gate.open.remote()
    ray.get(pending)
    for bad in (big, [1], [big.hex()]):
        with pytest.raises(TypeError):
            get_object_locations(bad)
    with pytest.raises(TypeError):
        get_object_locations([big], timeout_ms="x")
