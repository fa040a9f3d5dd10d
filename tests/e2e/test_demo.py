"""Runs scripts/demo, which the README shows first, unchanged."""

import pathlib
import socket
import subprocess

import pytest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "demo"


@pytest.mark.alone("the demo's cluster has the well-known port 6379")
def test_the_demo_is_complete():
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", 6379))
        except OSError:
            pytest.skip("port 6379, which the demo is about, is taken")
    done = subprocess.run([DEMO], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.endswith("The demo is complete.\n"), (
        done.stdout[-2000:] + done.stderr[-2000:]
    )
