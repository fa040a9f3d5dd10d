"""The tree itself: include directions, generated documents, example files, unit files."""
import contextlib
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from conftest import BIN, REPO, free_port

sys.path.insert(0, str(REPO / "scripts"))
import check_includes  # noqa: E402

UNITS = sorted(glob.glob(str(REPO / "systemd" / "*.service")))


def test_include_directions():
    assert list(check_includes.violations(REPO)) == []


@pytest.mark.parametrize("path, line", [
    ("daemons/head/service/x.cc", '#include "daemons/node_manager/core/types.h"'),
    ("worker/service/x.cc", "#include <boost/asio.hpp>"),
    ("worker/core/x.h", '#include "common/net/loop.h"'),
    ("daemons/head/core/x.cc", "#include <thread>"),
    ("daemons/head/core/x.cc", "auto now = steady_now_us();"),
    ("common/base/x.h", '#include "common/net/loop.h"'),
])
def test_a_wrong_include_is_found(tmp_path, path, line):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(line + "\n")
    (found,) = check_includes.violations(tmp_path)
    assert found.startswith(f"{path}:1:")


def test_the_settings_document_is_current():
    table = subprocess.run([BIN / "rayctl", "settings-doc"], capture_output=True, text=True, check=True).stdout
    assert table in (REPO / "docs" / "configuration.md").read_text(), "run make docs"


@pytest.mark.parametrize("path", sorted(glob.glob(str(REPO / "config" / "*.json"))), ids=os.path.basename)
def test_example_files_are_accepted(shell, path):
    assert json.load(open(path))
    shell.ok("start", "--head", "--port=0", "--config", path, "--num-cpus=1", "--object-store-memory=100000000")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_units_verify():
    done = subprocess.run(["systemd-analyze", "verify", *UNITS], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_installed_units_find_the_programs_below_any_prefix(tmp_path):
    """`PREFIX/bin` with what systemd and sed give a meaning; the tools are stand-ins, so that only the script itself is at work."""
    tools, prefix = tmp_path / "tools", '/opt/our ray 100% & "new"|x'
    tools.mkdir()
    units = pathlib.Path(f"{tmp_path}/root{prefix}/lib/systemd/system")
    units.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(unit, units)
    (tools / "cmake").write_text("#!/bin/sh\n")
    (tools / "cmake").chmod(0o755)
    subprocess.run([REPO / "scripts" / "install", prefix], check=True, env={**os.environ, "DESTDIR": str(tmp_path / "root"), "PATH": f"{tools}:{os.environ['PATH']}"})
    installed = sorted(units.glob("*.service"))
    done = subprocess.run(["systemd-analyze", "verify", *installed], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr
    for unit in installed:
        assert 'Environment="PATH=/opt/our ray 100%% & \\"new\\"|x/bin:/usr/bin:/bin"' in unit.read_text().splitlines()


def unit_command(unit, variables):
    """ExecStart of a unit, its variables filled in."""
    text = (REPO / "systemd" / unit).read_text()
    command = re.search(r"^ExecStart=/usr/bin/env (.*)$", text, re.M).group(1)
    words = [re.sub(r"\$\{(\w+)\}", lambda match: variables[match.group(1)], word) for word in command.split()]
    return [str(BIN / words[0]), *words[1:]]


@contextlib.contextmanager
def units(shell, port, within=()):
    """What systemd would do: the three commands, each with a notification socket; then SIGTERM. `within`: words before the node's two commands."""
    state, run = shell.scratch / "state", shell.scratch / "run"
    state.mkdir()
    run.mkdir()
    variables = {"STATE_DIRECTORY": str(state), "RUNTIME_DIRECTORY": str(run), "RAY_HEAD_ADDRESS": f"127.0.0.1:{port}"}
    env = {**shell.env, "RAY_AUTH_TOKEN": "a" * 64}
    started = []
    try:
        for unit in ("ray-head.service", "ray-object-store.service", "ray-node-manager.service"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
                path = str(shell.scratch / f"{unit}.notify")
                notify.bind(path)
                notify.settimeout(20)
                command = [str(port) if word == "6379" else word for word in unit_command(unit, variables)]
                if unit != "ray-head.service":
                    command = [*within, *command]
                started.append(subprocess.Popen(command, env={**env, "NOTIFY_SOCKET": path}, stderr=subprocess.PIPE, text=True))
                assert b"READY=1" in notify.recv(1000), unit
        yield
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
            assert process.returncode in (0, -signal.SIGTERM), process.args
    finally:
        for process in started:
            process.kill()
            process.communicate()


def only_node(shell, address, **env):
    (node,) = json.loads(shell.ok("nodes", "--address", address, "--format", "json", **env))
    return node["Resources"]


def test_units_start_daemons_that_say_ready(shell):
    port = free_port()
    with units(shell, port):
        shell.ok("health-check", "--address", f"127.0.0.1:{port}", RAY_AUTH_TOKEN="a" * 64)


def test_a_node_of_the_units_offers_what_rayctl_start_would(shell):
    port, token = free_port(), {"RAY_AUTH_TOKEN": "a" * 64}
    with units(shell, port):
        by_units = only_node(shell, f"127.0.0.1:{port}", **token)
    shell.ok("start", "--head", f"--port={port}", **token)
    by_rayctl = only_node(shell, f"127.0.0.1:{port}", **token)
    del by_rayctl["node:__internal_head__"]
    assert set(by_units) == set(by_rayctl)
    assert by_units["CPU"] == by_rayctl["CPU"]
    for name in ("memory", "object_store_memory"):      # what is available changes from one moment to the next
        assert by_units[name] == pytest.approx(by_rayctl[name], rel=0.5), name


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount of its own needs root")
def test_a_node_of_the_units_keeps_within_its_control_group(shell):
    group = shell.scratch / "cgroup"
    group.mkdir()
    (group / "cpu.max").write_text("100000 100000\n")
    (group / "memory.max").write_text("1000000000\n")
    (group / "memory.current").write_text("200000000\n")
    within = ["unshare", "--mount", "sh", "-c", f'mount --bind {group} /sys/fs/cgroup && exec "$@"', "sh"]
    if subprocess.run([*within, "true"], capture_output=True).returncode != 0:
        pytest.skip("mounts are not allowed here")
    port = free_port()
    with units(shell, port, within):
        resources = only_node(shell, f"127.0.0.1:{port}", RAY_AUTH_TOKEN="a" * 64)
    assert resources["CPU"] == 1
    assert resources["memory"] + resources["object_store_memory"] == 800_000_000
    assert resources["object_store_memory"] == pytest.approx(240_000_000, abs=4096)
