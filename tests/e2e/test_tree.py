"""The tree itself: include directions, generated documents, example files, unit files."""
import glob
import json
import os
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


def unit_command(unit, variables):
    """ExecStart of a unit, its variables filled in."""
    text = (REPO / "systemd" / unit).read_text()
    command = re.search(r"^ExecStart=/usr/bin/env (.*)$", text, re.M).group(1)
    words = [re.sub(r"\$\{(\w+)\}", lambda match: variables[match.group(1)], word) for word in command.split()]
    return [str(BIN / words[0]), *words[1:]]


def test_units_start_daemons_that_say_ready(shell):
    """What systemd would do: the three commands, each with a notification socket; then SIGTERM."""
    port = free_port()
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
                started.append(subprocess.Popen(command, env={**env, "NOTIFY_SOCKET": path}, stderr=subprocess.PIPE, text=True))
                assert b"READY=1" in notify.recv(1000), unit
        shell.ok("health-check", "--address", f"127.0.0.1:{port}", RAY_AUTH_TOKEN="a" * 64)
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
            assert process.returncode in (0, -signal.SIGTERM), process.args
    finally:
        for process in started:
            process.kill()
            process.wait()
