"""rayctl list, get, summary and memory: what they print, and how they end."""

import json

import pytest
from cluster import Cluster, world
from waiting import eventually
from http_api import Api

import ray


@pytest.fixture(scope="module")
def told():
    with world() as shell:
        cluster = Cluster(shell, dashboard_port=0)
        cluster.api = Api.of(shell, cluster.output)
        shell.env["RAY_ADDRESS"] = cluster.address
        ray.init(address=cluster.address, log_to_driver=False)

        @ray.remote
        def square(x):
            return x * x

        @ray.remote(num_cpus=0)
        class Counter:
            def add(self):
                return 1

        cluster.counter = Counter.options(name="count").remote()
        ray.get(cluster.counter.add.remote())
        ray.get([square.remote(x) for x in range(120)])
        assert eventually(
            lambda: cluster.api.rows("tasks", filters=[("name", "=", "square")])["total"] == 120, 30
        )
        yield cluster


def test_list_prints_a_table(told):
    lines = told.shell.ok("list", "actors").splitlines()
    assert (
        lines[0] == ""
        and lines[1].startswith("======== List: ")
        and lines[2:5] == ["Stats:", "-" * 30, "Total: 1"]
    )
    assert lines[8].split() == [
        "ACTOR_ID",
        "CLASS_NAME",
        "STATE",
        "JOB_ID",
        "NAME",
        "NODE_ID",
        "PID",
        "RAY_NAMESPACE",
    ]
    assert lines[9].split()[:4] == ["0", told.counter._actor_id.hex(), "Counter", "ALIVE"]
    assert told.shell.ok("list", "actors", "--format=table").splitlines()[8:] == lines[8:]
    assert told.shell.ok("list", "placement-groups") == "No resource in the cluster\n"


def test_formats_for_programs(told):
    [actor] = json.loads(told.shell.ok("list", "actors", "--format=json"))
    assert actor["name"] == "count" and "call_site" not in actor
    assert (
        "call_site" in json.loads(told.shell.ok("list", "actors", "--format=json", "--detail"))[0]
    )
    for words in (["--format=yaml"], ["--detail"]):
        text = told.shell.ok("list", "actors", *words)
        assert (
            text.startswith("---\n-   actor_id: ")
            and text.endswith("...\n")
            and "    class_name: Counter\n" in text
        )


def test_filters_and_limits(told):
    done = told.shell.run(
        "list",
        "tasks",
        "-f",
        "func_or_class_name=SQUARE",
        "--filter",
        "state!=FAILED",
        "--limit=5",
        "--format=json",
    )
    assert (
        done.returncode == 0
        and len(json.loads(done.stdout)) == 5
        and "Showing 5 of 120" in done.stderr
    )
    assert json.loads(told.shell.ok("list", "tasks", "-f", "state=FAILED", "--format=json")) == []
    over_http = told.shell.ok(
        "list",
        "tasks",
        "-f",
        "name=square",
        "--limit=200",
        "--format=json",
        f"--address=http://{told.api.address}",
    )
    assert len(json.loads(over_http)) == 120


@pytest.mark.parametrize(
    "words, code, text",
    [
        (["list"], 2, "RESOURCE"),
        (["list", "colours"], 2, "placement-groups"),
        (["list", "nodes", "-f", "colour=x"], 2, "Supported filter columns"),
        (["list", "nodes", "-f", "state"], 1, "predicate"),
        (["list", "nodes", "--limit=10001"], 2, "--limit"),
        (["list", "nodes", "--format=xml"], 2, "--format"),
        (["list", "nodes", "--timeout=x"], 2, "--timeout"),
        (["list", "workers", "-f", "pid=x"], 2, "integer"),
        (
            ["list", "tasks", "-f", "state=runing"],
            2,
            "the state of tasks is never 'runing': it is one of NIL, PENDING_ARGS_AVAIL",
        ),
        (["list", "actors", "-f", "state!=gone"], 2, "ALIVE, RESTARTING, DEAD"),
        (["get"], 2, "RESOURCE"),
        (["get", "jobs", "x"], 2, "RESOURCE"),
        (["get", "actors"], 2, "list actors"),
        (["get", "cluster-events", "x"], 1, "list cluster-events"),
        (["summary"], 2, "tasks|actors|objects|placement-groups"),
        (["summary", "nodes"], 2, "summarized"),
        (["memory", "--units=TB"], 2, "GB"),
        (["memory", "--group-by=x"], 2, "STACK_TRACE"),
        (["list", "runtime-envs", "-f", "ref_cnt=1"], 2, "Supported filter columns"),
        (["get", "runtime-envs", "x"], 2, "RESOURCE"),
        (["list", "nodes", "--address=http://127.0.0.1:1"], 1, "does not answer"),
    ],
)
def test_wrong_words_are_refused(told, words, code, text):
    assert text in told.shell.fails(*words, code=code)


def test_get_prints_one_entry_or_says_that_there_is_none(told):
    text = told.shell.ok("get", "actors", told.counter._actor_id.hex())
    assert (
        text.replace("'", "").startswith(f"---\nactor_id: {told.counter._actor_id.hex()}\n")
        and "num_restarts: 0\n" in text
    )
    assert (
        told.shell.ok("get", "actors", "ff" * 16)
        == f"Resource with id={'ff' * 16} not found in the cluster.\n"
    )
    assert (
        json.loads(told.shell.ok("get", "actors", told.counter._actor_id.hex(), "--format=json"))[
            "num_restarts"
        ]
        == 0
    )
    assert json.loads(told.shell.ok("get", "actors", "ff" * 16, "--format=json")) is None
    assert told.shell.ok("get", "actors", told.counter._actor_id.hex(), "--format=yaml") == text
    assert "is_head_node: true\n" in told.shell.ok(
        "get", "nodes", ray.get_runtime_context().get_node_id()
    )


def test_summaries_count_by_state(told):
    tasks = told.shell.ok("summary", "tasks")
    assert (
        "======== Tasks Summary: " in tasks
        and "total_tasks: 120\n" in tasks
        and "Table (group by func_name):" in tasks
        and "FINISHED: 120" in tasks
    )
    assert "ALIVE: 1" in told.shell.ok("summary", "actors", f"--address=http://{told.api.address}")
    kept = ray.put(b"x" * 500_000)
    assert "Table (group by callsite):" in told.shell.ok("summary", "objects")
    del kept


def test_memory_lists_references_and_stores(told):
    kept = ray.put(b"x" * 2_000_000)
    text = told.shell.ok("memory", "--units=MB", "--sort-by=PID")
    assert text.startswith("======== Object references status: ") and "Sorting by pid..." in text
    assert [line for line in text.splitlines() if line.endswith(kept.hex())]
    data = json.loads(told.shell.ok("memory", "--format=json"))
    assert [
        row["object_size"] >= 2_000_000 for row in data["objects"] if row["object_id"] == kept.hex()
    ] == [True] and data["stores"][0]["used"] >= 2_000_000
    assert list(json.loads(told.shell.ok("memory", "--format=json", "--stats-only"))) == ["stores"]
    yaml = told.shell.ok("memory", "--format=yaml")
    assert yaml.startswith("---\nobjects:\n") and kept.hex() in yaml and "stores:\n" in yaml
    assert told.shell.ok("memory", "--stats-only").startswith(
        "--- Aggregate object store stats across all nodes ---\nPlasma memory usage "
    )


def test_runtime_environments(told):
    assert told.shell.ok("list", "runtime-envs") == "No resource in the cluster\n"

    @ray.remote(runtime_env={"env_vars": {"COLOUR": "green"}})
    def nothing():
        pass

    ray.get(nothing.remote())
    lines = told.shell.ok("list", "runtime-envs").splitlines()
    assert lines[8].split() == ["RUNTIME_ENV", "SUCCESS", "CREATION_TIME_MS", "NODE_ID"]
    assert (
        "green" in lines[9]
        and "True" in lines[9].split()
        and lines[9].split()[-1] == ray.get_runtime_context().get_node_id()
    )
    [made] = json.loads(
        told.shell.ok("list", "runtime-envs", "--detail", "--format=json", "-f", "success=true")
    )
    assert (made["runtime_env"], made["ref_cnt"], made["error"]) == (
        {"env_vars": {"COLOUR": "green"}},
        1,
        None,
    )
    over_http = told.shell.ok(
        "list", "runtime-envs", "--detail", "--format=json", f"--address=http://{told.api.address}"
    )
    assert json.loads(over_http) == [made]
    assert "green" in told.shell.ok("list", "runtime-envs", "--detail")
