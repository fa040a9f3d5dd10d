"""Metrics: the endpoints that Prometheus scrapes, the list of targets that it gets, the head's own
history, and a real Prometheus."""

import http.client
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest
from cluster import Cluster, cluster, world
from waiting import eventually
from ports import free_port
from http_api import Api

import ray

REPO = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (NaN|[-+]?Inf|[-+0-9.e]+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
COMMON = {"SessionName", "Version"}


class Scrape:
    """Prometheus text, read strictly: the family and type of every sample must have been
    announced."""

    def __init__(self, text):
        self.types, self.samples = {}, []
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                assert name not in self.types, f"{name} comes twice"
                self.types[name] = kind
            elif not line.startswith("# HELP "):
                name, labels, value = SAMPLE.fullmatch(line).groups()
                pairs = LABEL.findall(labels or "")
                assert LABEL.sub("", labels or "") == "" and len(dict(pairs)) == len(pairs), line
                family = next(
                    (
                        name.removesuffix(end)
                        for end in ("_bucket", "_sum", "_count")
                        if self.types.get(name.removesuffix(end)) == "histogram"
                    ),
                    name,
                )
                assert family in self.types, line
                self.samples.append((name, dict(pairs), float(value)))
        keys = [(name, tuple(sorted(labels.items()))) for name, labels, _ in self.samples]
        assert len(set(keys)) == len(keys), "a sample comes twice"

    def of(self, name, **labels):
        return [
            (found, value)
            for which, found, value in self.samples
            if which == name and labels.items() <= found.items()
        ]

    def value(self, name, **labels):
        [(_, value)] = self.of(name, **labels)
        return value


def get(address, path, token=None):
    connection = http.client.HTTPConnection(address, timeout=120)
    try:
        connection.request(
            "GET", path, headers={"Authorization": f"Bearer {token}"} if token else {}
        )
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def seen():
    """Two nodes that have worked: tasks that ended well and badly, an actor, an object, metrics of
    a program."""
    with cluster(cpus=2, settings={"metrics_report_interval_ms": 200}, dashboard_port=0) as made:
        made.api = Api.of(made.shell, made.output)
        made.second = made.join(cpus=1, resources={"second": 1})
        made.await_nodes(2)

        @ray.remote(resources={"second": 0.1})
        def work(n):
            from ray.util.metrics import Counter, Histogram

            Counter("steps", description="steps taken", tag_keys=("WorkerId",)).inc(
                3, tags={"WorkerId": "mine"}
            )
            Histogram("step_s", boundaries=[0.5, 2]).observe(1)
            return n

        @ray.remote(max_retries=0)
        def fail():
            raise ValueError("on purpose")

        @ray.remote(num_cpus=0.5)
        class Kept:
            def ping(self):
                return 1

        made.kept = Kept.remote()
        made.object = ray.put(b"x" * 2_000_000)
        assert ray.get([work.remote(i) for i in range(5)] + [made.kept.ping.remote()]) == [
            0,
            1,
            2,
            3,
            4,
            1,
        ]
        with pytest.raises(ValueError):
            ray.get(fail.remote())
        yield made


def endpoints(seen):
    nodes = json.loads(seen.shell.ok("nodes", f"--address={seen.address}", "--format=json"))
    return {
        node["NodeID"]: f"{node['NodeManagerAddress']}:{node['MetricsExportPort']}"
        for node in nodes
        if node["Alive"]
    }


def scrape(seen, address):
    status, kind, text = get(address, "/metrics", seen.api.token)
    assert status == 200 and kind == "text/plain; version=0.0.4; charset=utf-8", text
    return Scrape(text)


def test_every_node_has_an_endpoint_that_needs_the_token(seen):
    assert len(endpoints(seen)) == 2
    for address in endpoints(seen).values():
        assert get(address, "/metrics")[0] == 401 and get(address, "/metrics", "wrong")[0] in (
            401,
            403,
        )
        assert (
            get(address, "/", seen.api.token)[0] == 200
            and get(address, "/other", seen.api.token)[0] == 404
        )
        found = scrape(seen, address)
        assert 0 <= found.value("ray_node_cpu_utilization") <= 100 and found.value(
            "ray_node_mem_used"
        ) + found.value("ray_node_mem_available") == found.value("ray_node_mem_total")
        [(labels, free)] = found.of("ray_node_disk_free")
        assert COMMON | {"ip", "Mount"} == set(labels) and free > 0
        assert {labels["Component"] for labels, _ in found.of("ray_component_rss_mb")} >= {
            "raylet",
            "plasma_store",
        }
        assert (
            found.value("ray_component_num_fds", Component="raylet") > 5
            and found.value("ray_component_uss_bytes", Component="raylet") > 100_000
        )
        used, free = (
            found.value("ray_object_store_used_memory"),
            found.value("ray_object_store_available_memory"),
        )
        assert (
            0 <= 100_000_000 - used - free < 4096
            and sum(value for _, value in found.of("ray_resources", Name="object_store_memory"))
            == 100_000_000
        )
        assert (
            found.types["ray_scheduler_placement_time_ms"] == "histogram"
            and found.types["ray_internal_num_processes_started_total"] == "counter"
        )


def test_programs_see_the_ports(seen):
    assert {
        node["NodeID"]: f"{node['NodeManagerAddress']}:{node['MetricsExportPort']}"
        for node in ray.nodes()
        if node["Alive"]
    } == endpoints(seen)
    assert not any("metrics" in label for node in ray.nodes() for label in node["Labels"])


def test_what_nodes_do_is_counted(seen):
    first, second = (
        scrape(seen, endpoints(seen)[seen.node_id(session)])
        for session in (seen.head_node, seen.second)
    )
    assert (
        first.value("ray_object_store_num_local_objects") >= 1
        and first.value("ray_object_store_used_memory") >= 2_000_000
    )
    assert (
        first.value("ray_workers", State="ACTOR") == 1
        and first.value("ray_workers", State="DRIVER") == 1
    )
    assert (
        first.value("ray_resources", Name="CPU", State="AVAILABLE")
        + first.value("ray_resources", Name="CPU", State="USED")
        == 2
    )
    assert (
        second.value("ray_scheduler_leases_granted_total")
        >= 1
        == second.value("ray_scheduler_placement_time_ms_bucket", le="+Inf")
        / second.value("ray_scheduler_placement_time_ms_count")
    )


def test_metrics_of_programs_come_with_those_of_their_node(seen):
    address = endpoints(seen)[seen.node_id(seen.second)]
    assert eventually(
        lambda: sum(value for _, value in scrape(seen, address).of("ray_steps_total")) == 15, 20
    )
    found = scrape(seen, address)
    assert found.types["ray_steps_total"] == "counter" and found.types["ray_step_s"] == "histogram"
    assert all(
        labels["WorkerId_"] == "mine" and labels["Component"] == "core_worker"
        for labels, _ in found.of("ray_steps_total")
    )
    assert sum(value for _, value in found.of("ray_step_s_bucket", le="2")) == 5 and not any(
        value for _, value in found.of("ray_step_s_bucket", le="0.5")
    )


def test_the_head_tells_of_tasks_actors_and_jobs(seen):
    assert get(seen.api.address, "/metrics")[0] == 401
    job = ray.get_runtime_context().get_job_id()
    ended = dict(Name="work", State="FINISHED", JobId=job, IsRetry="0", Source="owner")

    def told():
        found = scrape(seen, seen.api.address)
        finished = sum(value for _, value in found.of("ray_tasks", **ended))
        return finished == 5 and found.value("ray_tasks_failed_total") >= 1

    assert eventually(told)
    found = scrape(seen, seen.api.address)
    assert found.value("ray_tasks", **ended) == 5
    assert found.value("ray_tasks", Name="fail", State="FAILED") == 1
    assert (
        found.value("ray_actors", Name="Kept", State="ALIVE_IDLE", JobId=job, Source="gcs")
        == 1
        == found.value("ray_gcs_actors_count", State="ALIVE")
    )
    assert (
        found.value("ray_running_jobs") == 1
        and found.value("ray_finished_jobs_total") == 0
        and found.value("ray_job_duration_s", JobId=job) > 0
    )
    assert (
        found.value("ray_cluster_active_nodes", node_type="head")
        == 1
        == found.value("ray_cluster_active_nodes", node_type="worker")
    )
    assert (
        found.value("ray_tasks_finished_total") >= 5
        and found.value("ray_component_rss_mb", Component="gcs") > 1
    )


def test_prometheus_is_told_of_nodes_that_come_and_go(seen):
    file = seen.shell.root / "prom_metrics_service_discovery.json"

    def told():
        [group] = json.loads(file.read_text())
        assert group["labels"] == {"job": "ray"}
        return set(group["targets"])

    wanted = set(endpoints(seen).values()) | {seen.api.address}
    assert eventually(lambda: told() == wanted), (told(), wanted)
    status, [group] = seen.api.get("/api/prometheus/sd")
    assert status == 200 and set(group["targets"]) == wanted
    assert seen.api.request("GET", "/api/prometheus/sd", token=False)[0] == 401
    port = free_port()
    third = seen.join(cpus=1, metrics_export_port=port)
    assert eventually(lambda: told() == wanted | {f"127.0.0.1:{port}"})
    assert endpoints(seen)[seen.node_id(third)] == f"127.0.0.1:{port}"
    seen.left = seen.node_id(third)
    assert eventually(
        lambda: any(
            node["node_id"] == seen.left
            for node in seen.api.ok("/api/v0/metrics/history", {"node_id": "all"})["nodes"]
        )
    )
    seen.kill(third, "ray-node-manager")
    assert eventually(lambda: told() == wanted)
    assert json.loads((pathlib.Path(seen.head_node).parent / file.name).read_text())[0]["targets"]


def test_every_metric_of_the_grafana_dashboard_exists(seen, tmp_path):
    kept = REPO / "config" / "grafana" / "ray_dashboard.json"
    subprocess.run(
        [sys.executable, REPO / "scripts" / "make_grafana", tmp_path / "made.json"],
        check=True,
        timeout=60,
    )
    assert kept.read_text() == (tmp_path / "made.json").read_text(), (
        "scripts/make_grafana has changed: run it"
    )
    wanted = {
        (name, label)
        for panel in json.loads(kept.read_text())["panels"]
        for target in panel.get("targets", [])
        for name, labels in re.findall(r"\b(ray_[a-z0-9_]+)(?:\{([^}]*)\})?", target["expr"])
        for label in re.findall(r"(\w+)[!=]", labels)
    }
    assert len(wanted) > 30
    labels = {}
    for address in [*endpoints(seen).values(), seen.api.address]:
        for name, found, _ in scrape(seen, address).samples:
            labels.setdefault(name, set()).update(found)
    assert not {(name, label) for name, label in wanted if label not in labels.get(name, ())}


def test_the_head_remembers(seen):
    def history(**query):
        return seen.api.ok("/api/v0/metrics/history", query)

    wanted = {
        "nodes": 2,
        "cpus": 3,
        "cpus_used": 0.5,
        "actors": 1,
        "jobs": 1,
        "store_capacity": 200_000_000,
    }
    found = {}

    def newest():
        # A point may be the mean of several values, so the older values of the range have to be
        # over, too.
        found.update(history(node_id="all", minutes=5, points=50))
        series = found["cluster"]["series"]
        return {name: values[-1] for name, values in series.items() if values}

    assert eventually(
        lambda: (
            len(history()["cluster"]["time_ms"]) >= 3
            and wanted.items() <= (last := newest()).items()
            and last["store_used"] >= 2_000_000
        )
    ), newest()
    series, times = found["cluster"]["series"], found["cluster"]["time_ms"]
    assert (
        len(times) <= 50
        and times == sorted(times)
        and all(len(values) == len(times) for values in series.values())
    )
    assert (
        series["memory_total"][-1] > series["memory_used"][-1] > 0
        and series["store_used"][-1] >= 2_000_000
        and series["store_capacity"][-1] == 200_000_000
    )
    alive = {node["node_id"]: node["alive"] for node in found["nodes"]}
    assert sorted(alive.values()) == [False, True, True] and alive[seen.left] is False, (
        "a node that left keeps its past"
    )
    assert [node["node_id"] for node in history(node_id=seen.left)["nodes"]] == [seen.left]
    assert history()["nodes"] == [] and found["kept_samples"] > 0 < found["most_samples"]
    for wrong in ({"minutes": "0"}, {"points": "x"}, {"node_id": "zz"}):
        assert seen.api.get("/api/v0/metrics/history", wrong)[0] in (400, 500)
    assert seen.api.request("GET", "/api/v0/metrics/history", token=False)[0] == 401


def test_health_of_prometheus_and_grafana_is_asked_for(seen):
    for path, variable in (
        ("/api/prometheus_health", "RAY_PROMETHEUS_HOST"),
        ("/api/grafana_health", "RAY_GRAFANA_HOST"),
    ):
        status, answer = seen.api.get(path)
        assert status == 200 or (status == 500 and variable in answer["msg"])


def test_a_port_in_use_is_one_clear_error(seen):
    port = endpoints(seen)[seen.node_id(seen.head_node)].rsplit(":", 1)[1]
    assert port in seen.shell.fails(
        "start",
        f"--address={seen.address}",
        f"--metrics-export-port={port}",
        "--num-cpus=1",
        "--object-store-memory=100000000",
    )


@pytest.mark.skipif(
    not shutil.which("prometheus"),
    reason="Prometheus is not installed (Debian: apt-get install --no-install-recommends prometheus)",
)
def test_prometheus_scrapes_two_nodes(seen):
    port = free_port()
    assert f"http://127.0.0.1:{port}" in seen.shell.ok(
        "metrics", "launch-prometheus", f"--port={port}"
    )
    try:
        assert "running already" in seen.shell.fails(
            "metrics", "launch-prometheus", f"--port={port}"
        )

        def ask(expression):
            status, _, text = get(f"127.0.0.1:{port}", "/api/v1/query?query=" + expression)
            assert status == 200, text
            return {
                tuple(sorted(sample["metric"].items())): float(sample["value"][1])
                for sample in json.loads(text)["data"]["result"]
            }

        targets = json.loads((seen.shell.root / "prom_metrics_service_discovery.json").read_text())[
            0
        ]["targets"]
        up = eventually(
            lambda: (
                (found := ask("up"))
                and len(found) == len(targets)
                and all(found.values())
                and found
            ),
            60,
        )
        assert up and {dict(labels)["instance"] for labels in up} == set(targets), (up, targets)
        assert sum(ask("ray_node_cpu_count").values()) >= 2 and len(ask("ray_node_cpu_count")) == 2
        [tasks] = ask('sum(ray_tasks{Name="work",State="FINISHED"})').values()
        assert tasks == 5
        assert sum(ask("ray_steps_total").values()) == 15
        _, _, text = get(f"127.0.0.1:{port}", "/api/v1/targets")
        assert not any(target["lastError"] for target in json.loads(text)["data"]["activeTargets"])
    finally:
        assert "has ended" in seen.shell.ok("metrics", "shutdown-prometheus")
    assert "No Prometheus" in seen.shell.ok("metrics", "shutdown-prometheus")


@pytest.mark.skipif(not shutil.which("chromium"), reason="Chromium is not installed")
def test_the_page_draws_the_history(tmp_path):
    with world() as shell:
        shell.env["RAY_AUTH_MODE"] = "disabled"
        made = Cluster(shell, settings={"metrics_report_interval_ms": 100}, dashboard_port=0)
        address = (
            next(word for word in made.output.split() if word.startswith("http://"))
            .removeprefix("http://")
            .rstrip("/")
        )
        assert eventually(
            lambda: (
                len(
                    json.loads(get(address, "/api/v0/metrics/history")[2])["data"]["cluster"][
                        "time_ms"
                    ]
                )
                >= 3
            )
        )
        page = subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={tmp_path}",
                "--virtual-time-budget=8000",
                "--dump-dom",
                f"http://{address}/#overview",
            ],
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout
        # The legend of each chart shows the latest values.
        values = re.findall(r"</i>[a-z ]+<b>[0-9]", page)
        assert "Tasks ended per second" in page and len(values) >= 10 and "NaN" not in page, page


def test_a_busy_port_and_a_silent_program_are_one_message(seen, tmp_path):
    launch = "metrics", "launch-prometheus", "--prometheus=/bin/false"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = seen.shell.fails(*launch, f"--port={port}")
        assert f"port {port} on 127.0.0.1 is in use" in said and said.count("\n") == 1
    said = seen.shell.fails(*launch, f"--port={free_port()}")
    assert "and said nothing" in said and said.count("\n") == 1


def test_a_head_that_has_just_started_is_waited_for(shell):
    shell.ok("start", "--head", f"--port={free_port()}", "--object-store-memory=100000000")
    said = shell.fails(
        "metrics", "launch-prometheus", "--prometheus=/bin/false", f"--port={free_port()}"
    )
    assert "and said nothing" in said
    shell.ok("stop")


def test_a_missing_head_is_named_before_a_missing_prometheus(shell, tmp_path):
    launch = "metrics", "launch-prometheus", f"--temp-dir={tmp_path}"
    targets = tmp_path / "prom_metrics_service_discovery.json"
    assert f"{targets} does not exist" in shell.fails(*launch, PATH=str(tmp_path))
    targets.write_text("[]")
    assert "apt-get install prometheus" in shell.fails(*launch, PATH=str(tmp_path))


@pytest.mark.parametrize(
    "words, said",
    [
        (["metrics", "launch-prometheus", "--port=0"], "--port is '0'"),
        (["metrics", "launch-prometheus", "--port=nonsense"], "--port is 'nonsense'"),
        (["metrics", "launch-prometheus", "--prometheus=/"], "--prometheus /: not an executable"),
        (["microbenchmark", "--rounds=0"], "--rounds is '0'"),
        (["microbenchmark", "--seconds=many"], "--seconds is 'many'"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_wrong_option_is_named_although_the_helper_program_is_missing(
    shell, tmp_path, words, said
):
    """A user who mistyped an option must not be told first to install a program."""
    missing = str(tmp_path / "python3")
    assert said in shell.fails(*words, code=2, PATH=str(tmp_path), RAY_PYTHON=missing)
