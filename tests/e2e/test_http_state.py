"""The state API over HTTP: lists and summaries of real daemons, and what it refuses."""

import select

import pytest
from cluster import Cluster, world
from waiting import eventually
from http_api import Api

import ray

COLUMNS = {
    "actors": {
        "actor_id",
        "class_name",
        "state",
        "job_id",
        "name",
        "node_id",
        "pid",
        "ray_namespace",
    },
    "nodes": {
        "node_id",
        "node_ip",
        "is_head_node",
        "state",
        "state_message",
        "node_name",
        "resources_total",
        "labels",
    },
    "tasks": {
        "task_id",
        "attempt_number",
        "name",
        "state",
        "job_id",
        "actor_id",
        "type",
        "func_or_class_name",
        "parent_task_id",
        "node_id",
        "worker_id",
        "worker_pid",
        "error_type",
    },
}


@pytest.fixture(scope="module")
def busy():
    """A head that answers at most three questions at once, with a driver that has run tasks and
    keeps an actor."""
    with world() as shell:
        shell.env["RAY_STATE_SERVER_MAX_HTTP_REQUEST"] = "3"
        cluster = Cluster(shell, dashboard_port=0)
        cluster.api = Api.of(shell, cluster.output)
        ray.init(address=cluster.address, log_to_driver=False)

        @ray.remote
        def square(x):
            if x < 0:
                raise ValueError("negative")
            return x * x

        @ray.remote
        class Counter:
            def add(self):
                return 1

        cluster.counter = Counter.options(name="count").remote()
        assert ray.get(cluster.counter.add.remote()) == 1
        assert ray.get([square.remote(x) for x in range(150)]) == [x * x for x in range(150)]
        with pytest.raises(ValueError):
            ray.get(square.options(max_retries=0).remote(-1))
        assert eventually(
            lambda: cluster.api.rows("tasks", filters=[("name", "=", "square")])["total"] == 151, 30
        )
        yield cluster


def test_a_list_says_how_much_there_is(busy):
    found = busy.api.rows(
        "tasks", filters=[("func_or_class_name", "=", "SQUARE"), ("state", "!=", "failed")]
    )
    assert {
        key: found[key]
        for key in (
            "total",
            "num_filtered",
            "num_after_truncation",
            "partial_failure_warning",
            "warnings",
        )
    } == {
        "total": 150,
        "num_filtered": 150,
        "num_after_truncation": 100,
        "partial_failure_warning": None,
        "warnings": None,
    }
    assert len(found["result"]) == 100 and set(found["result"][0]) == COLUMNS["tasks"]
    ids = [row["task_id"] for row in found["result"]]
    assert ids == sorted(ids)
    [failed] = busy.api.rows("tasks", filters=[("state", "=", "FAILED")], detail=1)["result"]
    assert (
        failed["error_type"] == "TASK_EXECUTION_EXCEPTION"
        and "negative" in failed["error_message"]
        and failed["language"] == "PYTHON"
    )
    [again] = busy.api.rows("tasks", filters=[("task_id", "=", failed["task_id"])], detail="true")[
        "result"
    ]
    assert again == failed
    assert (
        len(busy.api.rows("tasks", limit=10_000, filters=[("type", "=", "NORMAL_TASK")])["result"])
        == 151
    )


@pytest.mark.parametrize("resource", ["actors", "nodes", "tasks"])
def test_columns_are_the_contract_s(busy, resource):
    rows = busy.api.rows(resource)["result"]
    assert rows and all(set(row) == COLUMNS[resource] for row in rows)
    assert set(busy.api.rows(resource, detail="1")["result"][0]) > COLUMNS[resource]


def test_drivers_are_tasks_on_request(busy):
    filters = [("type", "=", "DRIVER_TASK")]
    assert busy.api.rows("tasks", filters=filters)["result"] == []
    [driver] = busy.api.rows("tasks", filters=filters, exclude_driver="false")["result"]
    assert (driver["state"], driver["job_id"]) == (
        "RUNNING",
        ray.get_runtime_context().get_job_id(),
    )


def test_filters_compare_as_their_column_does(busy):
    [row] = busy.api.rows("actors", filters=[("name", "=", "COUNT")])["result"]
    assert (row["class_name"], row["state"]) == ("Counter", "ALIVE")
    assert (
        busy.api.rows("actors", filters=[("pid", "=", str(row["pid"])), ("state", "!=", "dead")])[
            "num_filtered"
        ]
        == 1
    )
    assert (
        busy.api.rows(
            "actors",
            filters=[
                ("name", "=", "count"),
                ("state", "=", "ALIVE"),
                ("class_name", "=", "Counter"),
            ],
        )["num_filtered"]
        == 1
    )
    assert busy.api.rows("nodes", filters=[("is_head_node", "=", "true")])["num_filtered"] == 1
    assert busy.api.rows("nodes", filters=[("is_head_node", "=", "False")])["result"] == []


def test_summaries(busy):
    def summary(resource, **query):
        return busy.api.ok(f"/api/v0/{resource}/summarize", query)["result"]["result"][
            "node_id_to_summary"
        ]["cluster"]

    tasks = summary("tasks", summary_by="func_name")
    assert (
        tasks["summary"]["square"]["state_counts"] == {"FINISHED": 150, "FAILED": 1}
        and tasks["summary_by"] == "func_name"
    )
    assert (tasks["total_tasks"], tasks["total_actor_tasks"], tasks["total_actor_scheduled"]) == (
        151,
        1,
        1,
    )
    actors = summary("actors")
    assert actors["total_actors"] == 1 and actors["summary"]["Counter"]["state_counts"] == {
        "ALIVE": 1
    }
    kept = ray.put(b"x" * 300_000)
    objects = summary("objects")
    assert (
        objects["total_objects"] >= 1
        and objects["total_size_mb"] > 0.2
        and "callsite_enabled" in objects
    )
    del kept


@pytest.mark.parametrize(
    "path, query, status, text",
    [
        ("/api/v0/tasks", {"limit": 10_001}, 400, "10000"),
        ("/api/v0/tasks", {"limit": "many"}, 400, "limit"),
        ("/api/v0/nodes", {"timeout": "-1"}, 400, "timeout"),
        (
            "/api/v0/nodes",
            {"filter_keys": "colour", "filter_predicates": "=", "filter_values": "x"},
            400,
            "Supported filter columns",
        ),
        (
            "/api/v0/placement_groups",
            {"filter_keys": "colour", "filter_predicates": "=", "filter_values": "x"},
            400,
            "Supported filter columns",
        ),
        (
            "/api/v0/nodes",
            {"filter_keys": "state", "filter_predicates": ">", "filter_values": "x"},
            400,
            "predicate",
        ),
        ("/api/v0/nodes", {"filter_keys": "state"}, 400, "each filter"),
        (
            "/api/v0/workers",
            {"filter_keys": "pid", "filter_predicates": "=", "filter_values": "x"},
            400,
            "integer",
        ),
        (
            "/api/v0/tasks/summarize",
            {"summary_by": "colour"},
            400,
            "summarized by func_name or lineage",
        ),
        ("/api/v0/actors/summarize", {"summary_by": "lineage"}, 400, "summarized by class"),
        (
            "/api/v0/placement_groups/summarize",
            {"summary_by": "callsite"},
            400,
            "summarized by strategy",
        ),
    ],
)
def test_what_cannot_be_is_refused(busy, path, query, status, text):
    got, answer = busy.api.get(path, query)
    assert (got, answer["result"]) == (status, False) and text in answer["msg"], answer
    assert set(answer) == {"result", "msg", "data"}


def test_too_many_questions_at_once(busy):
    def ask():
        connection = busy.api.connect()
        connection.request(
            "GET", "/api/v0/delay/600", headers={"Authorization": f"Bearer {busy.api.token}"}
        )
        return connection

    def none_is_free():
        # For a moment, our own question below may be one of the three.
        refused = select.select([connection.sock for connection in waiting], [], [], 0)[0]
        for connection in [connection for connection in waiting if connection.sock in refused]:
            connection.close()
            waiting[waiting.index(connection)] = ask()
        return busy.api.get("/api/v0/nodes")[0] == 429

    waiting = [ask() for _ in range(3)]
    assert eventually(none_is_free)
    assert "RAY_STATE_SERVER_MAX_HTTP_REQUEST" in busy.api.get("/api/v0/nodes")[1]["msg"]
    assert busy.api.get("/api/version")[0] == 200
    for connection in waiting:
        connection.close()
    # The head does nothing for clients that have gone.
    assert eventually(lambda: busy.api.get("/api/v0/nodes")[0] == 200)


# Requests that need a token; the endpoints in OPEN answer everybody.
CLOSED = [
    ("GET", path)
    for path in (
        "/api/version",
        "/api/ray/version",
        "/timezone",
        "/cluster_id",
        "/usage_stats_enabled",
        "/api/v0/actors",
        "/api/v0/jobs",
        "/api/v0/nodes",
        "/api/v0/placement_groups",
        "/api/v0/workers",
        "/api/v0/tasks",
        "/api/v0/objects",
        "/api/v0/runtime_envs",
        "/api/v0/cluster_events",
        "/api/v0/tasks/summarize",
        "/api/v0/actors/summarize",
        "/api/v0/objects/summarize",
        "/api/v0/placement_groups/summarize",
        "/api/v0/delay/0",
        "/api/v0/tasks/timeline",
        "/api/v0/logs",
        "/api/v0/logs/file",
        "/api/v0/logs/stream",
        "/api/v0/logs/piece",
        "/api/v0/cluster_metadata",
        "/api/v0/metrics/history",
        "/metrics",
        "/api/prometheus/sd",
        "/api/jobs/",
        "/api/jobs/x",
        "/api/jobs/x/logs",
        "/api/jobs/x/logs/tail",
        "/api/packages/gcs/_ray_pkg_x.zip",
        "/nodes",
        "/logical/actors",
        "/events",
        "/api/cluster_status",
        "/api/component_activities",
        "/worker/traceback",
        "/worker/cpu_profile",
        "/task/traceback",
        "/task/cpu_profile",
    )
] + [("POST", "/api/authenticate"), ("GET", "/no/such/path"), ("DELETE", "/api/v0/nodes")]
OPEN = ["/api/authentication_mode", "/api/gcs_healthz", "/api/healthz", "/-/healthz"]


@pytest.mark.parametrize("method, path", CLOSED)
def test_a_stranger_is_told_nothing(busy, method, path):
    assert busy.api.request(method, path, token=False)[::2] == (
        401,
        b"Unauthorized: Missing authentication token",
    )
    for headers in (
        {"Authorization": "Bearer wrong"},
        {"Authorization": busy.api.token},
        {"X-Ray-Authorization": "Bearer wrong"},
        {"Cookie": "ray-authentication-token=wrong"},
    ):
        assert busy.api.request(method, path, token=False, headers=headers)[::2] == (
            403,
            b"Forbidden: Invalid authentication token",
        ), headers


@pytest.mark.parametrize("method, path", CLOSED)
def test_the_cookie_serves_no_page_of_another_origin(busy, method, path):
    cookie = {"Cookie": f"ray-authentication-token={busy.api.token}"}
    for origin in ("http://evil.example", "null", f"http://{busy.api.address}1"):
        assert busy.api.request(method, path, token=False, headers={**cookie, "Origin": origin})[
            ::2
        ] == (403, b"Forbidden: this request comes from a page of another site"), origin
    if method == "GET":
        assert busy.api.request(
            method, path, token=False, headers={**cookie, "Origin": f"http://{busy.api.address}"}
        )[0] not in (401, 403)


def test_no_page_of_another_origin_starts_a_websocket(busy):
    upgrade = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    for known in (
        {"Cookie": f"ray-authentication-token={busy.api.token}"},
        {"Authorization": f"Bearer {busy.api.token}"},
    ):
        for origin, status in (
            ("http://evil.example", 403),
            ("null", 403),
            (f"http://{busy.api.address}", 404),
        ):
            assert (
                busy.api.request(
                    "GET",
                    "/api/jobs/none/logs/tail",
                    token=False,
                    headers={**upgrade, **known, "Origin": origin},
                )[0]
                == status
            ), (known, origin)


def test_a_browsers_session_reads_until_it_signs_out(busy):
    status, headers, _ = busy.api.request("POST", "/api/authenticate")
    cookie = headers["Set-Cookie"].split(";")[0]
    assert (
        status == 200
        and busy.api.token not in headers["Set-Cookie"]
        and "Max-Age=2592000; Path=/; HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
    )
    known = {"Cookie": cookie}
    assert busy.api.request("GET", "/api/v0/nodes", token=False, headers=known)[0] == 200
    for method, path in (
        ("POST", "/api/jobs/"),
        ("PUT", "/api/packages/gcs/_ray_pkg_x.zip"),
        ("DELETE", "/api/jobs/x"),
        ("POST", "/api/authenticate"),
    ):
        assert busy.api.request(method, path, token=False, headers=known)[::2] == (
            403,
            b"Forbidden: the session of a browser may only read; this takes the token",
        ), path
    assert (
        busy.api.request(
            "POST", "/api/sign_out", token=False, headers={**known, "Origin": "http://evil.example"}
        )[0]
        == 403
    )
    assert busy.api.request("GET", "/api/v0/nodes", token=False, headers=known)[0] == 200
    status, headers, _ = busy.api.request("POST", "/api/sign_out", token=False, headers=known)
    assert status == 200 and "ray-authentication-token=; Max-Age=0" in headers["Set-Cookie"]
    assert busy.api.request("GET", "/api/v0/nodes", token=False, headers=known)[::2] == (
        403,
        b"Forbidden: Invalid authentication token",
    )
    assert busy.api.request("POST", "/api/sign_out", token=False)[0] == 200


@pytest.mark.parametrize("path", OPEN)
def test_open_paths_are_open(busy, path):
    assert busy.api.request("GET", path, token=False)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [{"X-Ray-Authorization": "Bearer {}"}, {"Cookie": "a=b; ray-authentication-token={}"}],
)
def test_the_token_may_come_otherwise(busy, headers):
    headers = {name: text.format(busy.api.token) for name, text in headers.items()}
    assert busy.api.request("GET", "/api/v0/nodes", token=False, headers=headers)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"User-Agent": "Mozilla/5.0"},
        {"Origin": "http://evil.example"},
        {"Referer": "http://evil.example/x"},
        {"Sec-Fetch-Mode": "cors"},
    ],
)
def test_browsers_may_only_read(busy, headers):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        status, _, text = busy.api.request(method, "/api/v0/nodes", headers=headers)
        assert (status, text.decode()) == (
            405,
            f"'{method}' method not allowed for browser traffic.",
        )
    assert busy.api.request("GET", "/api/v0/nodes", headers=headers)[0] == 200


def test_other_sites_get_nothing(busy):
    for site in ("cross-site", "same-site"):
        assert (
            busy.api.request(
                "GET", "/api/v0/nodes", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}
            )[0]
            == 403
        )
    assert (
        busy.api.request(
            "GET",
            "/api/v0/nodes",
            headers={"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
        )[0]
        == 200
    )


def test_unknown_paths_and_methods(busy):
    assert busy.api.request("GET", "/api/v0/colours")[0] == 404
    assert busy.api.request("POST", "/api/v0/nodes")[0] == 405


def test_browsers_do_not_see_values_of_variables(busy):
    @ray.remote(num_cpus=0, runtime_env={"env_vars": {"SECRET": "sesame"}})
    class Holder:
        def hold(self):
            return 1

    holder = Holder.remote()
    assert ray.get(holder.hold.remote()) == 1
    [made] = busy.api.rows("runtime_envs", detail=1, filters=[("success", "=", "true")])["result"]
    assert (
        made["runtime_env"] == {"env_vars": {"SECRET": "sesame"}}
        and made["ref_cnt"] == 1
        and made["creation_time_ms"] > 0
    )
    assert set(busy.api.rows("runtime_envs")["result"][0]) == {
        "runtime_env",
        "success",
        "creation_time_ms",
        "node_id",
    }
    for path in ("/api/v0/runtime_envs", "/api/v0/actors?detail=1"):
        assert b"sesame" in busy.api.request("GET", path)[2]
        page = busy.api.request("GET", path, headers={"Sec-Fetch-Site": "same-origin"})[2]
        assert b"sesame" not in page and b"<redacted>" in page and b"SECRET" in page, path
