"""Head and nodes as services of systemd: the protocol, the watchdog, the restarts after each kind
of end, the unit files and the files beside them."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

from census import Line
from cluster import alive
from raw_rpc import parse
from waiting import eventually, until
from ports import free_port
from shell import BIN, REPO
from services import HEAD, NODE, RENDERED, STORE, TOKEN, Service, Unit, machine

ANALYZE = shutil.which("systemd-analyze")
needs_analyze = pytest.mark.skipif(not ANALYZE, reason="systemd-analyze is not installed")
UNITS = sorted(RENDERED.glob("*.service"))
# The most tenths of a point; `systemd-analyze security` explains every entry.
EXPOSURE = {
    HEAD: 15,
    STORE: 20,
    NODE: 42,
}


@pytest.fixture
def host(shell):
    with machine(shell, free_port()) as running:
        yield running


# ---- the files


@needs_analyze
def test_systemd_finds_no_fault_in_the_units():
    assert {unit.stem for unit in UNITS} == {name + at for name in EXPOSURE for at in ("", "@")}
    done = subprocess.run([ANALYZE, "verify", *UNITS], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr


@needs_analyze
@pytest.mark.parametrize("name", EXPOSURE)
def test_units_are_hardened(name):
    done = subprocess.run(
        [
            ANALYZE,
            "security",
            "--offline=true",
            "--no-pager",
            f"--threshold={EXPOSURE[name]}",
            RENDERED / f"{name}.service",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout.splitlines()[-1]


@needs_analyze
def test_installed_units_find_the_programs_below_any_prefix(tmp_path):
    """The prefix has characters that mean something to systemd or sed. A stand-in replaces cmake,
    so that only scripts/install itself is at work."""
    tools, prefix = tmp_path / "tools", '/opt/our ray 100% & "new"|x'
    tools.mkdir()
    units = pathlib.Path(f"{tmp_path}/root{prefix}/lib/systemd/system")
    units.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(unit, units)
    (tools / "cmake").write_text("#!/bin/sh\n")
    (tools / "cmake").chmod(0o755)
    subprocess.run(
        [REPO / "scripts" / "install", prefix],
        check=True,
        env={
            **os.environ,
            "DESTDIR": str(tmp_path / "root"),
            "PATH": f"{tools}:{os.environ['PATH']}",
        },
    )
    installed = sorted(units.glob("*.service"))
    done = subprocess.run([ANALYZE, "verify", *installed], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr
    for unit in installed:
        assert (
            'Environment="PATH=/opt/our ray 100%% & \\"new\\"|x/bin:/usr/bin:/bin"'
            in unit.read_text().splitlines()
        )


def test_a_template_differs_from_its_unit_in_names_only():
    for name in EXPOSURE:
        unit, template = Unit(name).values, Unit(name + "@").values
        instance = {
            key: [
                value.replace(" (%i)", "")
                .replace("@%i", "")
                .replace("-%i", "")
                .replace("/%i.env", "/ray.env")
                for value in values
            ]
            for key, values in template.items()
        }
        assert instance == unit and template["EnvironmentFile"] == ["-/etc/ray/%i.env"]


@pytest.mark.skipif(
    not shutil.which("systemd-sysusers") or os.geteuid() != 0,
    reason="systemd-sysusers is not installed, or this is not root",
)
def test_user_and_directories(tmp_path):
    """Carries out the files for sysusers.d and tmpfiles.d in a root of its own."""
    (tmp_path / "etc" / "ray").mkdir(parents=True)
    (tmp_path / "etc" / "ray" / "ray.env").write_text("RAY_AUTH_TOKEN=x\n")
    for tool, file in (
        (["systemd-sysusers"], "ray-sysusers.conf"),
        (["systemd-tmpfiles", "--create"], "ray-tmpfiles.conf"),
    ):
        done = subprocess.run(
            [*tool, f"--root={tmp_path}", REPO / "systemd" / file], capture_output=True, text=True
        )
        assert done.returncode == 0 and not re.search("(?i)fail|error|unknown", done.stderr), (
            done.stderr
        )
    name, _, uid, gid, *_, home, shell_ = (
        (tmp_path / "etc" / "passwd").read_text().strip().split(":")
    )
    assert (name, home, shell_) == ("ray", "/var/lib/ray", "/usr/sbin/nologin")
    seen = {
        path: (oct(info.st_mode & 0o777), info.st_uid, info.st_gid)
        for path in ("etc/ray", "etc/ray/ray.env", "var/lib/ray")
        for info in [(tmp_path / path).stat()]
    }
    assert seen == {
        "etc/ray": ("0o750", 0, int(gid)),
        "etc/ray/ray.env": ("0o640", 0, int(gid)),
        "var/lib/ray": ("0o750", int(uid), int(gid)),
    }


def test_the_environment_file_explains_what_the_units_take():
    text = (REPO / "config" / "ray.env").read_text()
    assert not [line for line in text.splitlines() if line and not line.startswith("#")], (
        "it shall change nothing as it comes"
    )
    named = set(re.findall(r"^#(\w+)=", text, re.M))
    for name in EXPOSURE:
        unit = Unit(name)
        assert {variable for variable in unit.environment() if variable.startswith("RAY_")} <= named
    settings = subprocess.run(
        [BIN / "rayctl", "settings-doc"], capture_output=True, text=True, check=True
    ).stdout
    for name in (name[4:] for name in named if name.startswith("RAY_") and name[4:5].islower()):
        assert f"`{name}`" in settings, name
    for section, daemon in (
        ("the head:", HEAD),
        ("`ray-node-manager --help`", NODE),
        ("`ray-object-store --help`", STORE),
    ):
        help_ = subprocess.run(
            [BIN / daemon, "--help"], capture_output=True, text=True, check=True
        ).stdout
        options = re.findall(
            r"^#   (--[\w-]+)",
            text[text.index(section) :]
            .split("\n\n#RAY")[0]
            .split("\n#RAY_HEAD_OPTIONS")[0]
            .split("\n#RAY_NODE_OPTIONS")[0],
            re.M,
        )
        assert options and all(option in help_ for option in options), (daemon, options)


# ---- the protocol


def test_the_daemons_say_what_systemd_wants_to_hear(shell, host):
    head, store, node = host.up(HEAD, STORE, NODE, watchdog_ms=600)
    assert host.address in [said for said in head.messages if said.startswith("STATUS=")][-1]
    assert [said for said in node.messages if said.startswith("STATUS=")][
        0
    ] == f"STATUS=Joining the cluster of {host.address}"
    for service in (head, store, node):
        service.hear("WATCHDOG=1")
        service.hear("WATCHDOG=1")
    shell.ok("health-check", "--address", host.address, RAY_AUTH_TOKEN=TOKEN)
    for service, why in (
        (node, "received signal 15"),
        (store, "the node ends"),
        (head, "received signal 15"),
    ):
        code, _ = service.end_by_itself() if service is store else service.end()
        assert code == 0 and not Unit(service.name).restarts_after(code), service.name
        assert service.messages[service.messages.index("STOPPING=1") + 1] == f"STATUS={why}", (
            service.name
        )


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("name", [HEAD, STORE])
def test_a_daemon_that_hangs_is_not_kept_alive(host, name):
    (service,) = host.up(name, watchdog_ms=400)
    service.hear("WATCHDOG=1")
    service.process.send_signal(signal.SIGSTOP)
    assert eventually(lambda: state_of(service.process.pid) == "T")
    silent_from = len(service.settled())
    # These are the signals with which systemd ends a service that hangs.
    code, _ = service.end((signal.SIGABRT, signal.SIGCONT))
    assert service.messages[silent_from:] == []
    assert code == -signal.SIGABRT and Unit(name).restarts_after(code)
    host.up(name)


def test_a_node_manager_says_that_its_store_hangs(host):
    _, store, node = host.up(HEAD, STORE, NODE)
    node.hear("STATUS=Node ")
    # The store must have answered before it hangs: a node-manager says that it is ready before its
    # store has answered, and it ends when the store does not answer the hello.
    line = Line(str(host.scratch / "run" / "raylet"), TOKEN)
    until(lambda: parse(line.ask("NodeManagerService.GetStats")).get(6))
    store.process.send_signal(signal.SIGSTOP)
    node.hear("STATUS=This node does not work as it should: its object store ", seconds=60)
    store.process.send_signal(signal.SIGCONT)
    node.hear("STATUS=Node ")


def test_no_keep_alives_where_nobody_watches(host):
    head, store, node = host.up(HEAD, STORE, NODE)
    for service in (node, store, head):
        service.end()
        assert "WATCHDOG=1" not in service.messages


def test_start_block_is_a_service_too(shell, host):
    command = [
        *shell.command(
            "start",
            "--head",
            f"--port={free_port()}",
            "--num-cpus=1",
            "--object-store-memory=100000000",
            "--dashboard-port=0",
            "--block",
        )
    ]
    service = Service(host, "rayctl", command, host.env, watchdog_ms=500)
    host.started.append(service)
    for wanted in ("READY=1", "WATCHDOG=1", "WATCHDOG=1"):
        service.hear(wanted)
    code, _ = service.end()
    assert code == -signal.SIGTERM and "STOPPING=1" in service.messages
    assert eventually(lambda: not shell.processes()), shell.processes()


# ---- ends, as the restart policy sees them


def test_a_killed_head_comes_back_to_its_nodes(shell, host):
    head, _, node = host.up(HEAD, STORE, NODE)
    code, _ = head.end((signal.SIGKILL,))
    assert Unit(HEAD).restarts_after(code)
    node.hear(f"STATUS=The head at {host.address} is away")
    host.up(HEAD)
    node.hear("STATUS=Node ")
    (known,) = json.loads(
        shell.ok("nodes", "--address", host.address, "--format", "json", RAY_AUTH_TOKEN=TOKEN)
    )
    assert known["Alive"] and node.process.poll() is None


def test_a_node_without_its_store_ends_and_both_come_back(shell, host):
    _, store, node = host.up(HEAD, STORE, NODE)
    code, _ = store.end((signal.SIGKILL,))
    assert Unit(STORE).restarts_after(code)
    code, said = node.end_by_itself()
    assert code == 1 and Unit(NODE).restarts_after(code) and "store" in said
    assert any(
        said.startswith("STATUS=") and "store" in said
        for said in node.messages[node.messages.index("STOPPING=1") :]
    )
    host.up(STORE, NODE)
    shell.ok("job", "submit", "--address", host.address, "--", "true", RAY_AUTH_TOKEN=TOKEN)


def test_a_killed_node_manager_takes_workers_and_store_along_and_comes_back(host):
    _, store, node = host.up(HEAD, STORE, NODE)
    assert eventually(lambda: children(node.process.pid))
    workers = children(node.process.pid)
    code, _ = node.end((signal.SIGKILL,))
    assert Unit(NODE).restarts_after(code)
    # This line makes systemd start the store again.
    assert store.end_by_itself()[0] == 0 and "ray-object-store.service" in Unit(NODE).one(
        "Requires"
    )
    assert eventually(lambda: not any(alive(pid) for pid in workers))
    host.up(STORE, NODE)


def children(pid):
    return [
        int(child)
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]


@pytest.mark.parametrize(
    "name, given, said",
    [
        (HEAD, {"RAY_AUTH_TOKEN": None}, "there is no cluster token"),
        (STORE, {"RAY_AUTH_TOKEN": None}, "there is no cluster token"),
        (NODE, {"RAY_AUTH_TOKEN": None}, "there is no cluster token"),
        (HEAD, {"RAY_HEAD_OPTIONS": "--dashbord-port 1"}, "--dashbord-port"),
        (HEAD, {"RAY_HEAD_PORT": "70000"}, "70000"),
        (HEAD, {"RAY_HEAD_OPTIONS": "--token-file /nonexistent/token"}, "/nonexistent/token"),
        (STORE, {"RAY_OBJECT_STORE_OPTIONS": "--memory=-1"}, "--memory"),
        (NODE, {"RAY_NODE_OPTIONS": "--resources '{bad'"}, "--resources"),
        (NODE, {"RAY_HEAD_ADDRESS": "nowhere"}, "nowhere"),
        (NODE, {"RAY_max_workers": "many"}, "RAY_max_workers"),
    ],
)
def test_a_mistake_is_not_started_again(host, name, given, said):
    if name == NODE:
        host.up(STORE)
    code, written = host.start(name, **given).end_by_itself()
    assert code == 2 and said in written, written
    assert not Unit(name).restarts_after(code)


def test_a_wrong_token_is_not_tried_again(host):
    host.up(HEAD, STORE)
    node = host.start(NODE, RAY_AUTH_TOKEN="f" * 64)
    code, written = node.end_by_itself()
    assert code == 2 and "refuses this node" in written and not Unit(NODE).restarts_after(code)
    assert any("refuses this node" in said for said in node.messages if said.startswith("STATUS="))


def test_what_may_pass_is_tried_again(host):
    """The port is taken, or the head is not there yet."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", int(host.given["RAY_HEAD_PORT"])))
        taken.listen()
        code, written = host.start(HEAD).end_by_itself()
    assert code == 1 and "in use" in written and Unit(HEAD).restarts_after(code)
    host.up(STORE)
    code, written = host.start(NODE, RAY_connect_timeout_ms="200").end_by_itself()
    assert code == 1 and "could not be reached" in written and Unit(NODE).restarts_after(code)


@pytest.mark.parametrize("score, written", [("-500", {"0"}), ("0", {None}), ("200", {None})])
def test_a_daemon_that_is_protected_when_memory_ends_does_not_protect_its_workers(
    shell, host, score, written
):
    """Uses a stand-in for /proc/self/oom_score_adj, because not even root may lower the real one on
    every machine."""
    fake = shell.scratch / "oom"
    fake.mkdir()
    (fake / "daemon").write_text(score + "\n")
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-w",
            "-o",
            fake / "fake.so",
            REPO / "tests" / "e2e" / "fake_oom.c",
        ],
        check=True,
    )
    host.up(HEAD, STORE)
    (node,) = host.up(NODE, within=["env", f"LD_PRELOAD={fake}/fake.so", f"FAKE_OOM={fake}"])
    assert eventually(lambda: children(node.process.pid))
    assert {
        path.read_text() if path.exists() else None
        for path in (fake / str(pid) for pid in children(node.process.pid))
    } == written


# ---- what a node offers


def only_node(shell, address):
    (node,) = json.loads(
        shell.ok("nodes", "--address", address, "--format", "json", RAY_AUTH_TOKEN=TOKEN)
    )
    return node["Resources"]


def test_a_node_of_the_units_offers_what_rayctl_start_would(shell, host):
    started = host.up(HEAD, STORE, NODE, RAY_object_store_memory=None)
    by_units = only_node(shell, host.address)
    for service in reversed(started):
        service.end()
    shell.ok("start", "--head", f"--port={host.given['RAY_HEAD_PORT']}", RAY_AUTH_TOKEN=TOKEN)
    by_rayctl = only_node(shell, host.address)
    del by_rayctl["node:__internal_head__"]
    assert set(by_units) == set(by_rayctl)
    assert by_units["CPU"] == by_rayctl["CPU"]
    # These amounts change from one moment to the next.
    for name in (
        "memory",
        "object_store_memory",
    ):
        assert by_units[name] == pytest.approx(by_rayctl[name], rel=0.5), name


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount of its own needs root")
def test_a_node_of_the_units_keeps_within_its_control_group(shell, host):
    group = shell.scratch / "cgroup"
    group.mkdir()
    (group / "cpu.max").write_text("100000 100000\n")
    (group / "memory.max").write_text("1000000000\n")
    (group / "memory.current").write_text("200000000\n")
    within = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        f'mount --bind {group} /sys/fs/cgroup && exec "$@"',
        "sh",
    ]
    if subprocess.run([*within, "true"], capture_output=True).returncode != 0:
        pytest.skip("mounts are not allowed here")
    host.up(HEAD)
    host.up(STORE, NODE, within=within, RAY_object_store_memory=None)
    resources = only_node(shell, host.address)
    assert resources["CPU"] == 1
    assert resources["memory"] + resources["object_store_memory"] == 800_000_000
    assert resources["object_store_memory"] == pytest.approx(240_000_000, abs=4096)


def test_options_and_overrides_of_the_environment_file(shell, host):
    host.up(HEAD, STORE)
    host.up(
        NODE,
        RAY_OVERRIDE_RESOURCES='{"CPU": 8, "licence": 2}',
        RAY_OVERRIDE_LABELS='{"zone": "a"}',
        RAY_NODE_OPTIONS="--node-name 'on the left'",
    )
    (node,) = json.loads(
        shell.ok("nodes", "--address", host.address, "--format", "json", RAY_AUTH_TOKEN=TOKEN)
    )
    assert node["NodeName"] == "on the left" and node["Labels"]["zone"] == "a"
    assert node["Resources"]["CPU"] == 8 and node["Resources"]["licence"] == 2
