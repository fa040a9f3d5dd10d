"""rayctl from the shell: start, join, ask, submit, stop - and one clear message for whatever is
wrong."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest
from cluster import kill
from shell import BIN
from ports import free_port
from waiting import eventually, until

import ray

NODE_KEYS = [
    "NodeID",
    "Alive",
    "NodeManagerAddress",
    "NodeManagerHostname",
    "NodeManagerPort",
    "ObjectManagerPort",
    "ObjectStoreSocketName",
    "RayletSocketName",
    "MetricsExportPort",
    "MetricsAgentPort",
    "DashboardAgentListenPort",
    "NodeName",
    "RuntimeEnvAgentPort",
    "DeathReason",
    "DeathReasonMessage",
    "alive",
    "Resources",
    "Labels",
]


# ---- start and stop


def test_start_join_and_stop_leave_nothing(shell):
    port = free_port()
    out = shell.ok("start", "--head", f"--port={port}", "--num-cpus=2")
    assert (
        f"rayctl start --address='127.0.0.1:{port}'" in out
        and "ray.init()" in out
        and "rayctl stop" in out
    )
    token = shell.scratch / ".ray" / "auth_token"
    assert token.stat().st_mode & 0o777 == 0o600 and re.fullmatch(
        "[0-9a-f]{64}\n", token.read_text()
    )
    labels = shell.scratch / "labels.yaml"
    labels.write_text(
        "---\n# where it is\nzone: west\n\n'rack-number': \"7\"   # quoted\nexample.org/owner: us\n"
    )
    shell.ok(
        "start",
        f"--address=127.0.0.1:{port}",
        "--num-cpus=3",
        "--resources",
        '{"a": 1}',
        "--labels",
        "zone=east",
        f"--labels-file={labels}",
        "--node-name",
        "second",
    )
    nodes = json.loads(shell.ok("nodes", "--format", "json"))
    assert [node["NodeName"] for node in nodes if node["Labels"].get("zone") == "east"] == [
        "second"
    ], "--labels wins over the file"
    [named] = [node["Labels"] for node in nodes if node["NodeName"] == "second"]
    assert (named["rack-number"], named["example.org/owner"]) == ("7", "us")
    assert json.loads(shell.ok("cluster-resources", "--format", "json"))["CPU"] == 5
    assert "Stopped all 5 Ray processes." in shell.ok("stop")
    assert eventually(lambda: not shell.processes()), shell.processes()
    assert (
        not list(shell.root.glob("session_2*/sockets/*"))
        and not (shell.root / "ray_current_cluster").exists()
    )
    assert "Did not find any active Ray processes." in shell.ok("stop")


def test_the_second_name_and_the_version():
    def version(name):
        return subprocess.run(
            [BIN / name, "--version"], capture_output=True, text=True, check=True
        ).stdout

    assert version("ray") == f"ray, version {ray.__version__}\n"
    assert re.fullmatch(
        rf"rayctl, version \d+\.\d+\.\d+ \(with the interface of Ray {re.escape(ray.__version__)}\)\n",
        version("rayctl"),
    )


@pytest.mark.parametrize("as_json", ["0", "1"])
def test_a_dashboard_whose_port_is_taken_is_missed_at_the_start(shell, as_json):
    shell.env["RAY_BACKEND_LOG_JSON"] = as_json
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken_port = taken.getsockname()[1]
        done = shell.run("start", "--head", "--port=0", f"--dashboard-port={taken_port}")
    assert done.returncode == 0 and "to talk to it over HTTP" not in done.stdout
    (warning,) = done.stderr.splitlines()
    assert warning.startswith(
        f"Warning: the dashboard and its HTTP interface are not started: port {taken_port} on 127.0.0.1 is in use: choose another with --dashboard-port"
    )
    assert not set(warning) & set('"{}')


def test_force_stop_ends_what_hangs(shell):
    shell.ok("start", "--head", "--port=0")
    record = json.loads(next(shell.root.glob("session_2*/node_*.json")).read_text())
    for process in record["processes"]:
        os.kill(process["pid"], signal.SIGSTOP)
    assert "Stopped all 3" in shell.ok("stop", "--force")
    assert eventually(lambda: not shell.processes()), shell.processes()


# ---- asking the cluster


def test_status_has_the_contracts_layout(running):
    out = running.ok("status")
    for text in (
        "======== Autoscaler status: ",
        "Node status\n",
        "Active:\n 1 node_",
        "Pending:\n (no pending nodes)",
        "Recent failures:\n (no failures)",
        "Total Usage:\n 0.0/2.0 CPU\n 0B/",
        "0.0/1.5 thing",
        "Pending Demands:\n (no resource demands)",
    ):
        assert text in out
    page = json.loads(running.ok("status", "--format", "json"))
    assert page["cluster_resources"]["CPU"] == 2 and page["pending_demands"] == []


def test_nodes_and_resources_as_ray_shows_them(running):
    (node,) = json.loads(running.ok("nodes", "--format", "json", "--address", running.address))
    assert list(node) == NODE_KEYS
    assert (
        node["Alive"]
        and node["Labels"]["ray.io/node-id"] == node["NodeID"]
        and len(node["NodeID"]) == 56
    )
    total = json.loads(running.ok("cluster-resources", "--format", "json"))
    assert total == node["Resources"]
    assert (
        total["thing"] == 1.5
        and total["node:127.0.0.1"] == total["node:__internal_head__"] == 1
        and total["object_store_memory"] == 200000000
    )
    assert json.loads(running.ok("available-resources", "--format", "json")) == total
    assert "thing" in running.ok("cluster-resources")
    assert f"{node['NodeID']}  alive" in running.ok("nodes"), (
        "whole: drain-node, logs and stack take it"
    )


def test_yaml_says_what_json_says(running):
    (node,) = json.loads(running.ok("nodes", "--format=json"))
    for words, said in (
        (["nodes"], node["NodeID"]),
        (["cluster-resources"], "thing: 1.5"),
        (["available-resources"], "thing: 1.5"),
        (["status"], "session_name: session_"),
        (["summary", "tasks"], "total_tasks:"),
        (["job", "list"], "[]"),
        (["stack"], "[]"),
        (["debug"], "waiting: []"),
    ):
        text = running.ok(*words, "--format=yaml")
        assert text.startswith("---\n") and text.endswith("...\n") and said in text, (words, text)


def test_python_says_the_same(running):
    program = "import json, ray; ray.init(address='auto'); print(json.dumps([ray.nodes(), ray.cluster_resources(), ray.available_resources()]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=running.env,
        cwd=running.scratch,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    nodes, total, available = json.loads(done.stdout.splitlines()[-1])
    assert nodes == json.loads(running.ok("nodes", "--format", "json"))
    assert total == json.loads(running.ok("cluster-resources", "--format", "json"))
    assert available == total


def test_traces_of_the_same_second_are_kept_apart(running):
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [BIN / "rayctl", "timeline"],
                    env=running.env,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            for _ in range(8)
        ]
        written = [
            re.match(r"Trace file written to (\S+) \(", process.communicate()[0]).group(1)
            for process in started
        ]
    assert len(set(written)) == len(started)
    for path in written:
        assert isinstance(json.loads(pathlib.Path(path).read_text()), list)
        assert re.fullmatch(
            r"ray-timeline-\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(_\d+)?\.json", pathlib.Path(path).name
        )


def test_timeline_of_a_job(running):
    program = running.scratch / "traced.py"
    program.write_text(
        "import ray\nray.init()\n@ray.remote\ndef f(x): return x\n@ray.remote\nclass A:\n  def m(self): return 1\n"
        "ray.get([f.remote(i) for i in range(5)])\na = A.remote()\nray.get(a.m.remote())\n"
    )
    running.ok("job", "submit", "--", "python", program)

    def trace():
        out = running.ok("timeline", "-o", "trace.json")
        assert "Trace file written to trace.json" in out
        return json.loads((running.scratch / "trace.json").read_text())

    def count(events, kind):
        return sum(event["cat"] == kind for event in events)

    # Workers send what they have recorded a moment later, which is longer on a busy machine.
    events = until(trace, lambda them: count(them, "task::f") >= 5 and count(them, "task::A.m"))
    bodies = [event for event in events if event["cat"].startswith("task::")]
    assert count(bodies, "task::f") == 5
    for body in bodies:
        assert (
            list(body) == ["cat", "name", "pid", "tid", "ts", "dur", "ph", "cname", "args"]
            and body["ph"] == "X"
            and body["tid"].startswith("worker:")
        )
        inside = [
            e
            for e in events
            if e["tid"] == body["tid"]
            and e["cat"].startswith("task:")
            and not e["cat"].startswith("task::")
            and body["ts"] <= e["ts"]
            and e["ts"] + e["dur"] <= body["ts"] + body["dur"]
        ]
        assert {e["cat"] for e in inside} == {
            "task:deserialize_arguments",
            "task:execute",
            "task:store_outputs",
        }


def test_arrows_and_parts_of_a_timeline(running):
    program = running.scratch / "nested.py"
    program.write_text(
        "import ray\nray.init()\n@ray.remote\ndef inner(): pass\n@ray.remote\ndef outer(): ray.get(inner.remote())\nray.get(outer.remote())\n"
    )
    running.ok("job", "submit", "--submission-id=nested", "--", "python", program)

    def trace(*words):
        running.ok("timeline", "-o", "parts.json", *words)
        return json.loads((running.scratch / "parts.json").read_text())

    def bodies_of(events):
        return {
            event["name"].rpartition(".")[2]: event
            for event in events
            if event["cat"].startswith("task::")
        }

    events = until(
        lambda: trace("--job=nested", "--last=1h"),
        lambda them: set(bodies_of(them)) >= {"inner", "outer"},
    )
    bodies = bodies_of(events)
    assert set(bodies) == {"inner", "outer"}, "those of the other job are not there"
    arrows = {
        event["id"]: {other["ph"]: other for other in events if other.get("id") == event["id"]}
        for event in events
        if event["ph"] == "s"
    }
    assert len(arrows) == 2 and all(set(arrow) == {"s", "f"} for arrow in arrows.values())
    to = {
        name: next(
            arrow
            for arrow in arrows.values()
            if (arrow["f"]["tid"], arrow["f"]["ts"]) == (body["tid"], body["ts"])
        )
        for name, body in bodies.items()
    }
    assert (
        to["outer"]["s"]["tid"].startswith("driver:")
        and to["outer"]["s"]["pid"] == bodies["outer"]["pid"]
    )
    assert to["inner"]["s"]["tid"] == bodies["outer"]["tid"]
    assert (
        bodies["outer"]["ts"]
        <= to["inner"]["s"]["ts"]
        <= bodies["outer"]["ts"] + bodies["outer"]["dur"]
    )
    plain = trace("--job=nested", "--no-arrows")
    assert {event["ph"] for event in plain} == {"X"} and [
        event for event in plain if event["cat"] == "submit_task"
    ] == [event for event in events if event["cat"] == "submit_task"]
    driver = to["outer"]["s"]["tid"].removeprefix("driver:")
    assert trace(f"--job={driver[:8]}") == events
    assert "no job has this id" in running.fails("timeline", "--job=nobody")
    for wrong in ("5", "m", "-1m", "5 m", "5w", "99999999999999999999d"):
        done = running.run("timeline", f"--last={wrong}")
        assert (done.returncode, "takes a duration, as 90s, 5m, 2h or 1d" in done.stderr) == (
            2,
            True,
        ), done.stderr


# ---- wrong input: one message, the right exit code, nothing left


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["frobnicate"], 2, "no such command: frobnicate"),
        (["upp"], 2, "no such command: upp"),
        (["--nope"], 2, "no such option: --nope"),
        (["status", "--nope"], 2, "no such option: --nope"),
        (["job", "frobnicate"], 2, "no such command: job frobnicate"),
        (["job", "submit"], 2, "command to run is missing"),
        (["job", "submit", "--", "echo", "\udcff"], 1, "the command is not valid UTF-8"),
        (
            ["job", "submit", "--submission-id", "\udcff", "--", "true"],
            2,
            "--submission-id is '\ufffd': it is not valid UTF-8",
        ),
        (["job", "status", "\udcff"], 2, "ID is '\ufffd': it is not valid UTF-8"),
        (["logs", "\udcff"], 2, "is '\ufffd': it is not valid UTF-8"),
        (["timeline", "--job", "\udcff"], 2, "--job is '\ufffd': it is not valid UTF-8"),
        (
            ["start", "--head", "--labels", "a=\udcff"],
            2,
            "--labels is 'a=\ufffd': it is not valid UTF-8",
        ),
        (
            ["start", "--address=127.0.0.1:1", "--node-name", "\udcff"],
            2,
            "--node-name is '\ufffd': it is not valid UTF-8",
        ),
        (
            ["start", "--head", "--temp-dir", "/tmp/\udcff"],
            2,
            "--temp-dir is '/tmp/\ufffd': it is not valid UTF-8",
        ),
        (["metrics", "launch-prometheus", "--port=0"], 2, "--port is '0'"),
        (["get", "cluster-events", "x"], 1, "list cluster-events"),
        (["profile", "head", "-o", "/nonexistent/x.svg"], 1, "cannot write /nonexistent/x.svg"),
        (["timeline", "-o", "/nonexistent/x.json"], 1, "cannot write /nonexistent/x.json"),
        (["logs", "actor", "zz"], 2, "'zz' is not the id of an actor"),
        (["train", "tensorboard", "x", "--logdir=/nonexistent"], 1, "--logdir /nonexistent"),
        (["train", "tensorboard", "x", "--python=/nonexistent"], 1, "--python /nonexistent"),
        (["job", "status"], 2, "ID is missing"),
        (["job", "stop", ""], 2, "ID is empty"),
        (["job", "delete", ""], 2, "ID is empty"),
        (["start"], 1, "--head to start a cluster"),
        (["start", "--head", "--resources", "{bad"], 1, "--resources is '{bad'"),
        (["start", "--head", "--resources", "[1]"], 1, "--resources is '[1]'"),
        (["start", "--head", "--labels", "zone"], 1, "--labels is 'zone'"),
        (["start", "--head", "--labels", "a=b=c"], 2, "--labels has 'a=b=c': a label's name and"),
        (["start", "--head", "--labels", '{"d": "!!"}'], 2, "--labels has 'd=!!'"),
        (["start", "--head", "--labels", "p/-d=x"], 2, "--labels has 'p/-d=x'"),
        (["start", "--head", "--labels-file", "missing.yaml"], 1, "cannot read 'missing.yaml'"),
        (["start", "--head", "--labels-file", "/etc"], 1, "cannot read '/etc'"),
        (
            ["start", "--head", "--labels", '{"ray.io/node-id": "x"}'],
            1,
            "the cluster gives this label",
        ),
        (
            ["start", "--head", "--labels-file", "/proc/self/cmdline"],
            2,
            "it takes lines NAME: VALUE",
        ),
        (["start", "--head", "--system-config", "[1]"], 1, "--system-config is '[1]'"),
        (["start", "--address=17101"], 1, "17101"),
        (["start", "--head", "--resources", '{"a": -1}'], 2, "'a'"),
        (["start", "--head", "--resources", '{"a": 1e300}'], 2, "'a'"),
        (["start", "--head", "--num-cpus", "-2"], 2, "--num-cpus is '-2'"),
        (["start", "--head", "--memory", "-5"], 2, "--memory is '-5'"),
        (["start", "--head", "--object-store-memory", "1000"], 2, "78643200"),
        (["start", "--head", "--port", "99999"], 2, "--port is '99999'"),
        (
            ["start", "--head", "--node-ip-address", "nonsense"],
            2,
            "--node-ip-address is 'nonsense'",
        ),
        (["start", "--head", "--node-ip-address", "240.9.9.9"], 2, "240.9.9.9 is on no interface"),
        (
            ["start", "--head", "--system-config", '{"no_such": 1}'],
            2,
            "--system-config: there is no setting 'no_such'",
        ),
        (["start", "--head", "--config", "/nonexistent.json"], 2, "/nonexistent.json"),
        (["start", "--head", "--config", "/etc"], 2, "cannot read the config file /etc"),
        (["start", "--head", "--temp-dir", "relative"], 2, "absolute path"),
        (["start", "--address=127.0.0.1:1"], 1, "127.0.0.1:1"),
        (["start", "--address=nonsense"], 1, "nonsense"),
        (["start", "--address=127.0.0.1:1", "--port=1"], 1, "--port is for --head only"),
        (["status"], 1, "rayctl start --head"),
        (["status", "--address", "127.0.0.1:1"], 1, "127.0.0.1:1"),
        (["health-check", "--address", "127.0.0.1:1"], 1, "127.0.0.1:1"),
        (["get-auth-token"], 1, "no cluster token"),
        (["kill-actor"], 2, "NAME is missing: which actor?"),
        (["kill-actor", "a", "--name", "b"], 2, "give the actor"),
        (["stop", "-g", "soon"], 2, "--grace-period is 'soon'"),
    ],
)
def test_wrong_input_is_one_clear_message(shell, words, code, said):
    assert said in shell.fails(*words, code=code)
    assert not shell.processes() and not list(shell.root.glob("session_2*"))


def test_a_root_that_is_not_utf_8_is_refused(shell):
    said = shell.fails("start", "--head", "--port=0", RAY_TMPDIR="/tmp/\udcff", code=2)
    assert "'/tmp/\ufffd': it takes a path that is valid UTF-8" in said
    assert not shell.processes()


def test_a_busy_port(running):
    assert f"port {running.port}" in running.fails("start", "--head", f"--port={running.port}")
    running.ok("health-check")


def test_a_wrong_option_is_named_before_a_busy_port(running):
    port = f"--port={running.port}"
    said = running.fails("start", "--head", port, "--temp-dir", "relative", code=2)
    assert "takes an absolute path" in said


def test_a_token_of_binary_bytes(running):
    path = running.scratch / "binary"
    path.write_bytes(b"\x7fELF\xff\xfe\n")
    path.chmod(0o600)
    for words in (["status"], ["job", "list"], ["get-auth-token"]):
        said = running.fails(*words, RAY_AUTH_TOKEN_PATH=str(path), RAY_ADDRESS=running.address)
        assert (
            said.count("\n") == 1 and f"the token file {path} holds bytes that no token has" in said
        )
    assert "RAY_AUTH_TOKEN holds bytes" in running.fails(
        "status", RAY_AUTH_TOKEN="\x01\x02", RAY_ADDRESS=running.address
    )


def test_flags_that_one_port_makes_pointless(shell):
    done = shell.run(
        "start",
        "--head",
        "--port=0",
        "--min-worker-port=10002",
        "--include-log-monitor=true",
        "--ray-client-server-port",
        "10001",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("has no effect") == 3


def test_a_dead_cluster_does_not_mislead(shell):
    shell.ok("start", "--head", "--port=0")
    record = json.loads(next(shell.root.glob("session_2*/node_*.json")).read_text())
    kill(*[process["pid"] for process in record["processes"]])
    assert eventually(lambda: not shell.processes())
    assert "has ended" in shell.fails("status")
    shell.ok("start", "--head", "--port=0")
    shell.ok("status")
    shell.ok("stop")
    assert not list(shell.root.glob("session_2*/sockets/*"))


def test_something_else_listens_there(shell):
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert address in shell.fails("status", "--address", address)


def test_a_token_is_generated_once_and_printed_again(shell):
    token = shell.ok("get-auth-token", "--generate")
    assert re.fullmatch("[0-9a-f]{64}", token)
    assert shell.ok("get-auth-token") == token
    assert "disabled" in shell.fails("get-auth-token", RAY_AUTH_MODE="disabled")


def test_without_authentication(shell):
    shell.ok("start", "--head", "--port=0", RAY_AUTH_MODE="disabled")
    shell.ok("status", RAY_AUTH_MODE="disabled")
    assert not pathlib.Path(shell.scratch / ".ray").exists()


# ---- variables, labels and headers


@pytest.mark.parametrize("variable", ["RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"])
def test_a_wrong_variable_is_blamed_itself(shell, variable):
    assert f"{variable} is 'ray://x:1'" in shell.fails("job", "list", **{variable: "ray://x:1"})


def test_a_variable_that_goes_before_the_option_is_named(running):
    other = "--address=http://127.0.0.1:1"
    done = running.run("job", "list", other, RAY_ADDRESS=running.address)
    assert (
        done.returncode == 0
        and done.stderr
        == f"Notice: RAY_ADDRESS is '{running.address}', which goes before {other} in job commands, as in Ray: unset it to reach the other.\n"
    )
    done = running.run(
        "job", "list", other, RAY_ADDRESS="127.0.0.1:1", RAY_API_SERVER_ADDRESS=running.address
    )
    assert done.returncode == 0 and "RAY_API_SERVER_ADDRESS is" in done.stderr
    assert (
        running.run(
            "job", "list", f"--address={running.address}", RAY_ADDRESS=running.address
        ).stderr
        == ""
    )


@pytest.mark.parametrize(
    "text, said",
    [
        (b"a: \xff\n", "is not valid UTF-8"),
        (b"'rack number': \"a: 7\"  # quoted\n", "--labels-file has 'rack number=a: 7'"),
        (b"url: http://x:1#2\n", "--labels-file has 'url=http://x:1#2'"),
        (b"owner: it's ours\n", "--labels-file has 'owner=it's ours'"),
    ],
)
def test_labels_of_a_file_are_text(shell, text, said):
    (shell.scratch / "labels").write_bytes(text)
    assert said in shell.fails(
        "start", "--head", "--port=0", "--labels-file", shell.scratch / "labels", code=2
    )
    assert not shell.processes()


@pytest.mark.parametrize(
    "headers", ['{"X-A": "a\\r\\nEvil: 1"}', '{"X-N": 1}', '{"X B": "1"}', '{"": "1"}']
)
def test_one_header_is_one_header(running, headers):
    for words in (["--headers", headers], []):
        assert "it takes an object of names and texts of one line" in running.fails(
            "job",
            "list",
            "--address=http://127.0.0.1:1",
            *words,
            RAY_JOB_HEADERS=headers,
            RAY_ADDRESS="",
        )


def test_a_user_without_a_home_directory_is_told_where_the_token_may_be(shell):
    said = shell.fails("start", "--head", "--port=0", HOME="/nonexistent/home")
    assert (
        "/nonexistent/home/.ray" in said
        and "RAY_AUTH_TOKEN" in said
        and "RAY_AUTH_TOKEN_PATH" in said
    )
