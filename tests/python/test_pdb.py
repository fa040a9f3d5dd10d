"""Breakpoints in tasks: pdb over TCP."""

import json
import os
import socket
import sys
import types

import pytest

import ray
from ray.experimental import internal_kv as kv
from waiting import until

pytestmark = pytest.mark.usefixtures("cluster")


def waiting_entry():
    """Returns the one stop that waits."""

    def look():
        for key in kv._internal_kv_list("RAY_PDB_", namespace="pdb"):
            text = kv._internal_kv_get(key, namespace="pdb")
            if text:
                return key.decode(), json.loads(text)

    return until(look)


class Terminal:
    """A connection to a stopped task."""

    def __init__(self):
        self.key, self.entry = waiting_entry()
        host, port = self.entry["pdb_address"].split(":")
        self.file = socket.create_connection((host, int(port)), timeout=60).makefile("rw")
        self.until_prompt()

    def until_prompt(self):
        text = ""
        while not text.endswith("(Pdb) "):
            read = self.file.read(1)
            if not read:
                return text
            text += read
        return text[: -len("(Pdb) ")]

    def say(self, command):
        self.file.write(command + "\n")
        self.file.flush()
        return self.until_prompt()


@ray.remote
def stops(how, value):
    os.environ["RAY_DEBUG"] = "legacy"
    if how == "breakpoint":
        breakpoint()
    else:
        from ray.util.pdb import set_trace

        set_trace("here" if how == "named" else None)
    value += 1
    return value


@pytest.mark.parametrize("how", ["breakpoint", "plain", "named"])
def test_looking_and_going_on(how):
    result = stops.remote(how, 1)
    terminal = Terminal()
    assert __file__ in terminal.entry["place"] and (
        how != "named" or terminal.key == "RAY_PDB_here"
    )
    assert terminal.say("p value").strip() == "1"
    terminal.say("n")
    assert terminal.say("p value").strip() == "2"
    terminal.say("value = 10")
    terminal.say("c")
    assert ray.get(result) == 10
    assert kv._internal_kv_list("RAY_PDB_", namespace="pdb") == []


def test_quit_fails_the_task():
    result = stops.options(max_retries=0).remote("plain", 1)
    Terminal().say("q")
    with pytest.raises(ray.exceptions.RayTaskError, match="BdbQuit"):
        ray.get(result)


def test_a_lost_connection_lets_the_task_go_on():
    result = stops.remote("plain", 1)
    terminal = Terminal()
    terminal.file.close()
    assert ray.get(result) == 2


def test_post_mortem():
    @ray.remote
    def fails():
        os.environ["RAY_DEBUG_POST_MORTEM"] = "1"
        secret = 42
        raise KeyError(secret)

    result = fails.remote()
    terminal = Terminal()
    assert terminal.say("p secret").strip() == "42"
    terminal.say("q")
    with pytest.raises(KeyError):
        ray.get(result)


def test_debugpy(monkeypatch, cluster):
    from ray.util import ray_debugpy

    monkeypatch.setitem(sys.modules, "debugpy", None)
    with pytest.raises(ImportError, match="pip install debugpy"):
        ray_debugpy.set_trace()
    calls = []
    monkeypatch.setattr(ray_debugpy, "_address", None)
    monkeypatch.setitem(
        sys.modules,
        "debugpy",
        types.SimpleNamespace(
            listen=lambda address: (address[0], 5),
            is_client_connected=lambda: False,
            breakpoint=lambda: calls.append("breakpoint"),
            wait_for_client=lambda: calls.append(waiting_entry()[1]["pdb_address"]),
        ),
    )
    ray_debugpy.set_trace()
    assert (
        calls == ["127.0.0.1:5", "breakpoint"]
        and kv._internal_kv_list("RAY_PDB_", namespace="pdb") == []
    )
