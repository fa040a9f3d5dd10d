"""Wrong input to commands and programs: one clear message with cause and remedy, the right exit
code, and the cluster works on.

Wrong bytes: test_bad_input_wire.py. Full and read-only places: test_bad_input_disk.py.
"""

import contextlib
import json
import socket
import subprocess

import pytest

from shell import BIN, Shell
from ports import free_port
from waiting import eventually
from driver import Driver
from failing_program import init_fails


class World:
    """A head of two CPUs with a driver that lives through all of this file."""

    def __init__(self):
        self.shell = Shell()
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.shell.ok(
            "start",
            "--head",
            f"--port={self.port}",
            "--num-cpus=2",
            "--object-store-memory=100000000",
        )
        self.record = json.loads(next(self.shell.root.glob("session_2*/node_*.json")).read_text())
        self.driver = Driver(self.shell, RAY_ADDRESS=self.address)

    def close(self):
        self.driver.close()
        self.shell.stop()


@pytest.fixture(scope="module")
def world():
    world = World()
    yield world
    world.close()


@pytest.fixture
def live(world):
    """Yields the world. After the test its cluster must work as before, with as many sessions."""
    sessions = set(world.shell.root.glob("session_2*"))
    yield world
    assert world.driver.works()
    assert set(world.shell.root.glob("session_2*")) == sessions, "a failed start left its session"


@contextlib.contextmanager
def deaf_port():
    """Yields a port whose connections are neither accepted nor refused, like that of a machine
    behind a silent firewall."""
    with socket.socket() as listener, contextlib.ExitStack() as fillers:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield listener.getsockname()[1]


# ---- addresses and ports


def test_a_wrong_port(live):
    """At the wrong port there is the node-manager, or no cluster at all."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        wrong = f"127.0.0.1:{other.getsockname()[1]}"
        for said in (
            live.shell.fails("start", f"--address={wrong}"),
            live.shell.fails("status", "--address", wrong),
        ):
            assert wrong in said and "something else listens there" in said
    door = f"127.0.0.1:{live.record['node_manager_port']}"
    for said in (
        live.shell.fails("start", f"--address={door}"),
        live.shell.fails("status", "--address", door),
        init_fails(live.shell, repr(door)),
    ):
        assert door in said and "is not the head's address" in said and "start --head" in said


def test_the_head_port_in_use(live):
    said = live.shell.fails("start", "--head", f"--port={live.port}")
    assert f"port {live.port}" in said and "in use" in said and "--port" in said
    assert "a head runs there already" in said and f"rayctl start --address={live.address}" in said
    done = subprocess.run(
        [
            BIN / "ray-head",
            "--port",
            str(live.port),
            "--host",
            "127.0.0.1",
            "--state-dir",
            str(live.shell.scratch / "other"),
        ],
        env={**live.shell.env, "RAY_AUTH_TOKEN": "x"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (
        done.returncode == 1 and done.stderr.count("in use") == 1 and str(live.port) in done.stderr
    )


def test_two_heads_start_at_one_port(shell):
    port = free_port()
    both = [
        subprocess.Popen(
            shell.command("start", "--head", f"--port={port}", "--num-cpus=1"),
            env=shell.env,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(2)
    ]
    outcomes = sorted((process.communicate(timeout=120)[1], process.returncode) for process in both)
    assert (
        [code for _, code in outcomes] == [0, 1]
        and f"port {port}" in outcomes[1][0]
        and outcomes[1][0].startswith("Error: ")
    )
    shell.ok("health-check")


def test_an_unreachable_head(live):
    with deaf_port() as port:
        address = f"127.0.0.1:{port}"
        for attempt in (
            lambda: live.shell.fails("start", f"--address={address}"),
            lambda: live.shell.fails("status", "--address", address),
            lambda: init_fails(live.shell, repr(address)),
        ):
            assert address in attempt()
    assert "nobody.invalid" in live.shell.fails("start", "--address=nobody.invalid:6379")
    said = init_fails(live.shell, RAY_ADDRESS="127.0.0.1:1")
    assert (
        said.startswith("ConnectionError")
        and "RAY_ADDRESS" in said
        and "`rayctl start --head --port=1`" in said
    )
    for wrong in ("nonsense", "127.0.0.1:99999", "127.0.0.1:", ":6379x", "[::1:6379"):
        assert init_fails(live.shell, repr(wrong)).startswith("ValueError: ")


# ---- tokens


@pytest.mark.parametrize(
    "token, said",
    [
        ({"RAY_AUTH_TOKEN": "f" * 64}, "not the one of this cluster"),
        ({"RAY_AUTH_MODE": "disabled"}, "demands a token"),
    ],
)
def test_commands_and_init_say_why_a_token_is_refused(live, token, said):
    for words in (
        ["status"],
        ["start", f"--address={live.address}"],
        ["job", "submit", "--", "true"],
        ["timeline"],
        ["nodes"],
    ):
        message = live.shell.fails(*words, RAY_ADDRESS=live.address, **token)
        assert said in message and "RAY_AUTH_TOKEN" in message and live.address in message
    message = init_fails(live.shell, repr(live.address), **token)
    assert (
        message.startswith("ray.exceptions.AuthenticationError")
        and said in message
        and "RAY_AUTH_TOKEN" in message
    )


def test_a_node_with_a_wrong_token(live):
    """The daemon is started without rayctl, which would check the token first."""
    scratch = live.shell.scratch / "node"
    scratch.mkdir()
    done = subprocess.run(
        [
            BIN / "ray-node-manager",
            "--head-address",
            live.address,
            "--session-dir",
            scratch,
            "--store-socket",
            live.record["object_store_socket"],
            "--resources",
            '{"CPU": 1}',
        ],
        env={**live.shell.env, "RAY_AUTH_TOKEN": "f" * 64},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (
        done.returncode == 2
        and "refuses this node" in done.stderr
        and "RAY_AUTH_TOKEN" in done.stderr
    )
    assert len(live.driver.run("ray.nodes()")) == 1


@pytest.mark.parametrize(
    "program_, words",
    [
        ("ray-head", ["--state-dir", "x"]),
        ("ray-node-manager", ["--head-address", "127.0.0.1:1", "--session-dir", "/tmp"]),
        ("ray-object-store", ["--socket", "x"]),
    ],
)
def test_no_daemon_listens_without_a_token(shell, program_, words):
    done = subprocess.run(
        [BIN / program_, *words],
        env=shell.env,
        cwd=shell.scratch,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (
        done.returncode in (1, 2)
        and "RAY_AUTH_TOKEN" in done.stderr
        and "RAY_AUTH_MODE=disabled" in done.stderr
    )


def test_token_files_and_modes_that_cannot_be_used_are_named(live):
    assert "/nonexistent" in live.shell.fails("status", RAY_AUTH_TOKEN_PATH="/nonexistent")
    empty = live.shell.scratch / "empty"
    empty.touch()
    assert "is empty" in live.shell.fails("status", RAY_AUTH_TOKEN_PATH=str(empty))
    assert "token or disabled" in live.shell.fails("status", RAY_AUTH_MODE="maybe")


# ---- flags


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["--resources", "{bad"], 1, "--resources is '{bad'"),
        (["--resources", "[1]"], 1, "JSON object of numbers"),
        (["--resources", '{"a": "b"}'], 1, "JSON object of numbers"),
        (["--resources", '{"a": NaN}'], 1, "JSON object of numbers"),
        (["--resources", '{"a": -1}'], 2, "'a'"),
        (["--resources", '{"a": 1e99}'], 2, "1e14"),
        (["--resources", '{"a": 0.00001}'], 2, "multiples of 0.0001"),
        (["--resources", '{"": 1}'], 2, "empty name"),
        (["--resources", '{"CPU": 1}'], 2, "--num-cpus"),
        (["--resources", '{"node:x": 1}'], 2, "the cluster's own"),
        (["--resources"], 2, "--resources"),
        (["--num-cpus", "-1"], 2, "--num-cpus is '-1'"),
        (["--num-cpus", "NaN"], 2, "--num-cpus is 'NaN'"),
        (["--num-cpus", "1e9"], 2, "0 to 1000000"),
        (["--num-cpus="], 2, "--num-cpus"),
        (["--num-gpus", "two"], 2, "--num-gpus is 'two'"),
        (["--memory", "nan"], 2, "--memory is 'nan'"),
        (["--memory", "99999999999999999999"], 2, "--memory"),
        (["--port", "70000"], 2, "0 to 65535"),
        (["--port", "-1"], 2, "0 to 65535"),
        (["--node-manager-port", "65536"], 2, "0 to 65535"),
        (["--object-store-memory", "1000"], 2, "from 78643200 to"),
        (["--object-store-memory", "99999999999999999999"], 2, "from 78643200 to"),
        (["--object-store-memory", "60000000000000"], 2, "bytes of memory"),
        (["--object-store-memory", "1GB"], 2, "'1GB'"),
        (["--labels", "zone"], 1, "--labels is 'zone'"),
        (["--labels", "ray.io/node-id=y"], 1, "ray.io/"),
        (["--plasma-directory", "/nonexistent"], 1, "/nonexistent"),
        (["--plasma-directory", "/nonexistent"], 1, "(rayctl: --plasma-directory)"),
        (["--config", "typo.json"], 2, "max_workrs"),
        (["--config", "broken.json"], 2, "not valid JSON"),
        (["--config", "negative.json"], 2, "'-3'"),
        (["--config", "missing.json"], 2, "missing.json"),
        (["--config", "/dev/zero"], 2, "/dev/zero: it has more than the 1048576 bytes"),
        (["--labels-file", "/dev/zero"], 1, "'/dev/zero': it has more than the 1048576 bytes"),
        (["--frobnicate"], 2, "--frobnicate"),
        (["--num-cpu", "1"], 2, "--num-cpu"),
        (["stray"], 2, "more words"),
        (["--autoscaling-config", "x"], 1, "not available"),
    ],
)
def test_wrong_flags(live, words, code, said):
    for name, text in {
        "typo": '{"max_workrs": 3}',
        "broken": '{"max_workers": ',
        "negative": '{"max_workers": -3}',
    }.items():
        (live.shell.scratch / f"{name}.json").write_text(text)
    message = live.shell.fails(
        "start", "--head", *([] if "--port" in words else ["--port=0"]), *words, code=code
    )
    assert said in message and message.count("\n") <= 2, message


def test_settings_from_the_environment(live):
    said = live.shell.fails("start", "--head", "--port=0", code=2, RAY_max_workers="many")
    assert "RAY_max_workers is 'many'" in said and "whole number" in said


@pytest.mark.parametrize(
    "name, words",
    [
        ("ray-head", ["--state-dir", "s"]),
        ("ray-node-manager", ["--head-address", "127.0.0.1:1", "--session-dir", "s"]),
        ("ray-object-store", ["--socket", "x"]),
    ],
)
@pytest.mark.parametrize(
    "wrong, said",
    [
        (["--frobnicate"], "--frobnicate"),
        (["--port", "70000"], "70000"),
        (["--port", "x"], "'x'"),
        (["--config", "typo.json"], "max_workrs"),
        (["--max-workers", "-3"], "-3"),
        (["stray"], "positional"),
    ],
)
def test_wrong_flags_of_the_daemons(shell, name, words, wrong, said):
    (shell.scratch / "typo.json").write_text('{"max_workrs": 3}')
    done = subprocess.run(
        [BIN / name, *words, *wrong],
        env={**shell.env, "RAY_AUTH_TOKEN": "x"},
        cwd=shell.scratch,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (
        done.returncode == 2
        and said in done.stderr
        and done.stderr.startswith(name)
        and done.stderr.count("\n") == 1
    ), done.stderr


def test_pointless_flags_are_noticed(shell):
    done = shell.run(
        "start",
        "--head",
        "--port=0",
        "--num-cpus=1",
        "--redis-password=x",
        "--object-manager-port=8076",
        "--include-log-monitor=false",
    )
    assert done.returncode == 0
    assert [line.split(" has no effect: ")[0] for line in done.stderr.splitlines()] == [
        "Notice: --object-manager-port",
        "Notice: --redis-password",
        "Notice: --include-log-monitor",
    ]


@pytest.mark.parametrize(
    "words, said",
    [
        (["frobnicate"], "no such command: frobnicate"),
        (["help", "frobnicate"], "no such command: frobnicate"),
        (["job"], "job"),
        (["job", "frobnicate"], "no such command"),
        (["job", "submit"], "missing"),
        (["job", "logs"], "ID is missing"),
        (["stop", "--nope"], "--nope"),
        (["timeline", "-o"], "o"),
        (["nodes", "--format", "xml"], "xml"),
    ],
)
def test_wrong_commands(live, words, said):
    done = live.shell.run(*words)
    assert done.returncode == 2 and said in done.stdout + done.stderr


# ---- resources, options and values of programs


@pytest.mark.parametrize(
    "options, error",
    [
        ("num_cpus=float('nan')", "ValueError"),
        ("num_cpus=float('inf')", "ValueError"),
        ("num_cpus=-1", "ValueError"),
        ("num_cpus=1e300", "ValueError"),
        ("num_cpus=10**400", "ValueError"),
        ("num_cpus=0.00001", "ValueError"),
        ("num_gpus=1.5", "ValueError"),
        ("memory=-1", "ValueError"),
        ("memory=float('nan')", "ValueError"),
        ("memory=1e30", "ValueError"),
        ("resources={'a': float('nan')}", "ValueError"),
        ("resources={'a': 1e300}", "ValueError"),
        ("resources={'a': 0.00001}", "ValueError"),
        ("resources={'a': -1}", "ValueError"),
        ("resources={'': 1}", "ValueError"),
        ("resources={1: 1}", "ValueError"),
        ("resources=3", "TypeError"),
        ("resources={'CPU': 1}", "ValueError"),
        ("num_returns=10**12", "ValueError"),
        ("num_returns=2**70", "ValueError"),
        ("num_returns=1.5", "TypeError"),
        ("max_retries=2**70", "ValueError"),
        ("max_retries=1.5", "TypeError"),
    ],
)
def test_invalid_options_are_refused_by_name(live, options, error):
    keyword = options.split("=")[0]
    for code in (
        f"echo.options({options}).remote(1)",
        f"ray.remote({options})(lambda: 1).remote()",
    ):
        said = live.driver.raises(code, error)
        assert keyword in said or "resource" in said, said
    if keyword not in ("num_returns", "max_retries"):
        live.driver.raises(f"Counter.options({options}).remote()", error)


@pytest.mark.parametrize(
    "options, error",
    [
        ("num_returns=-1", "ValueError"),
        ("num_returns=2**70", "ValueError"),
        ("num_returns='x'", "TypeError"),
        ("num_returns=1.5", "TypeError"),
        ("max_task_retries=-2", "ValueError"),
        ("max_task_retries='x'", "TypeError"),
        ("name=3", "TypeError"),
        ("colour=1", "TypeError"),
        ("retry_exceptions=[1]", "TypeError"),
    ],
)
def test_options_of_methods(live, options, error):
    live.driver.raises(f"counter.add.options({options})", error)


@pytest.mark.parametrize(
    "arguments, error",
    [
        ("num_cpus=-1", "ValueError"),
        ("num_cpus=float('nan')", "ValueError"),
        ("num_cpus=10**400", "ValueError"),
        ("num_cpus=1e12", "ValueError"),
        ("resources={'a': -1}", "ValueError"),
        ("resources={'a': 1e99}", "ValueError"),
        ("object_store_memory=1000", "ValueError"),
        ("object_store_memory=10**14", "ValueError"),
        ("object_store_memory=float('nan')", "ValueError"),
        ("_plasma_directory='/nonexistent'", "Error"),
        ("_system_config={'max_workrs': 1}", "ValueError"),
        ("_system_config={'max_workers': -3}", "ValueError"),
        ("_memory=-1", "ValueError"),
        ("_node_ip_address='nonsense'", "ValueError"),
    ],
)
def test_init_arguments(live, arguments, error):
    said = init_fails(live.shell, f"'local', {arguments}")
    assert said.split(":")[0].endswith(error)


def test_init_arguments_that_a_running_cluster_has_already(live):
    said = init_fails(live.shell, "num_cpus=1")
    assert (
        said.startswith("ValueError")
        and "num_cpus" in said
        and live.address in said
        and "address='local'" in said
    )


def test_what_cannot_be_pickled(live):
    run, raises = live.driver.run, live.driver.raises
    run("import threading")
    run(
        "class Locked(Exception):\n    def __init__(self): self.lock = threading.Lock(); super().__init__('has a lock')"
    )
    run("@ray.remote\ndef lock(): return threading.Lock()")
    run("@ray.remote\ndef locked(): raise Locked()")
    run("captured = threading.Lock()\n@ray.remote\ndef captures(): return captured")
    for code in (
        "echo.remote(threading.Lock())",
        "ray.put([1, threading.Lock()])",
        "captures.remote()",
        "ray.get(lock.remote())",
        "counter.__ray_call__.remote(threading.Lock())",
    ):
        said = raises(code, "TypeError")
        assert "lock" in said and "pickle" in said
    assert "has a lock" in raises("ray.get(locked.remote())", "RayTaskError")


def test_exceptions_of_the_system_are_caught_as_themselves(live):
    live.driver.run("@ray.remote\ndef reads(path): return open(path).read()")
    said = live.driver.raises("ray.get(reads.remote('/nonexistent'))", "FileNotFoundError")
    assert "/nonexistent" in said
    live.driver.run(
        "try: ray.get(reads.remote('/nonexistent'))\nexcept OSError as error: facts = (error.errno, error.filename)"
    )
    assert live.driver.run("facts") == (2, "/nonexistent")


def test_functions_and_classes_over_the_limit(live):
    live.driver.run("big = bytearray(101 << 20)")
    live.driver.run("@ray.remote\ndef captures_big(): return len(big)")
    said = live.driver.raises("captures_big.remote()", "ValueError")
    assert "too large" in said and "captures_big" in said and "ray.put" in said
    live.driver.run("@ray.remote\nclass Big:\n    data = bytes(101 << 20)")
    assert "Big" in live.driver.raises("Big.remote()", "ValueError")
    live.driver.run("del big, Big, captures_big")


def test_objects_larger_than_the_store(live):
    for code in (
        "ray.put(np.zeros(200_000_000, dtype=np.uint8))",
        "ray.get(echo.remote(np.zeros(200_000_000, dtype=np.uint8)))",
        "ray.get(ones.remote(200_000_000))",
    ):
        said = live.driver.raises(code, "ObjectStoreFullError")
        assert "can never fit" in said and "--object-store-memory" in said


def test_a_task_no_node_can_run(world):
    """A task waits for a resource that no node has: the driver and `rayctl status` say why and what
    there is. It runs once a node joins that has the resource."""
    world.driver.run(
        "@ray.remote(resources={'rare': 1})\ndef rare(): return 'ran'\n@ray.remote(num_cpus=0, resources={'rare': 1})\nclass Rare:\n    def here(self): return 'lives'"
    )
    world.driver.run("waiting = rare.remote(); actor = Rare.remote()")
    assert world.driver.run("len(ray.wait([waiting], timeout=1.5)[0])") == 0
    for needs in ("rare needs {'CPU': 1.0, 'rare': 1.0}", "The actor Rare needs"):
        assert eventually(lambda needs=needs: needs in world.driver.said()), world.driver.said()
    said = world.driver.said()
    assert "no node of the cluster has" in said and "'CPU': 2.0" in said
    status = world.shell.ok("status")
    assert (
        "{'CPU': 1.0, 'rare': 1.0}: 1+ pending tasks/actors (infeasible: no node has that much; they wait until one joins)"
        in status
        and "0.0/2.0 CPU" in status
    )
    assert world.driver.works()
    world.shell.ok(
        "start",
        f"--address={world.address}",
        "--num-cpus=1",
        "--object-store-memory=100000000",
        "--resources",
        '{"rare": 2}',
    )
    assert world.driver.run("ray.get([waiting, actor.here.remote()], timeout=120)") == [
        "ran",
        "lives",
    ]
    assert eventually(lambda: "infeasible" not in world.shell.ok("status"))
    world.driver.run("del actor, waiting")
