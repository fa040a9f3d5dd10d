"""Log files of nodes on this machine. Those of other machines raise by name: no daemon serves them yet."""
from __future__ import annotations

import codecs
import fnmatch
import os
import re
import socket
import time
from pathlib import Path
from typing import Any, Iterator

from ray import _raylet
from ray._private.options import not_in_release
from ray.util.state.api import get_actor, resolve_address
from ray.util.state.common import ActorState
from ray.util.state.exception import RayStateApiException, ServerUnavailable, ValidationError

_ANSI = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_CHUNK = 1 << 16
_DEFAULT_INTERVAL_S = 0.5


def _logs_of(address: str, node_id: str | None, node_ip: str | None, timeout: int) -> Path:
    """The logs directory of a node: of the one with this id, or at this address (a living one before dead ones)."""
    try:
        nodes = _raylet.nodes_of(address, float(timeout))
    except Exception as error:
        raise ServerUnavailable(f"The head at {address} did not answer: {error}") from error
    if node_id:
        found = [node for node in nodes if node["NodeID"] == node_id]
    else:
        found = sorted((node for node in nodes if node["NodeManagerAddress"] == node_ip), key=lambda node: not node["Alive"])
    if not found:
        raise RayStateApiException(f"There is no node with {'id ' + node_id if node_id else f'address {node_ip}'} in this cluster.")
    directory = Path(found[0]["_session_dir"]) / "logs"
    if found[0]["NodeManagerHostname"] != socket.gethostname() or not directory.is_dir():
        raise not_in_release(f"logs of nodes on other machines (node {found[0]['NodeID']} on {found[0]['NodeManagerHostname']})")
    return directory


def _category(name: str) -> str:
    if name.startswith("worker-"):
        return "worker_err" if name.endswith(".err") else "worker_out"
    for prefix, category in (("job-driver-", "driver"), ("ray-head", "gcs_server"), ("head", "gcs_server"), ("gcs_server", "gcs_server"),
                             ("ray-node-manager", "raylet"), ("node-manager", "raylet"), ("raylet", "raylet"), ("dashboard", "dashboard"),
                             ("ray-object-store", "object_store"), ("object-store", "object_store")):
        if name.startswith(prefix):
            return category
    return "internal"


def list_logs(address: str | None = None, node_id: str | None = None, node_ip: str | None = None, glob_filter: str | None = None,
              timeout: int = 30) -> dict[str, list[str]]:
    """The log files of a node, by kind: worker_out, worker_err, driver, gcs_server, raylet, object_store, internal. glob_filter: a shell pattern of names."""
    assert node_ip is not None or node_id is not None, "At least one of node ip and node id is required"
    directory = _logs_of(resolve_address(address), node_id, node_ip, timeout)
    found: dict[str, list[str]] = {}
    for path in sorted(directory.iterdir()):
        if fnmatch.fnmatchcase(path.name, glob_filter or "*"):
            found.setdefault(_category(path.name), []).append(path.name + ("/" if path.is_dir() else ""))
    return found


def _choose(address: str, node_id: str | None, node_ip: str | None, filename: str | None, actor_id: str | None, pid: int | str | None,
            submission_id: str | None, suffix: str, timeout: int) -> Path:
    if suffix not in ("out", "err"):
        raise ValidationError(f"suffix must be 'out' or 'err', got {suffix!r}")
    if actor_id:
        actor: Any = get_actor(actor_id, address, timeout)
        if not isinstance(actor, ActorState):
            raise RayStateApiException(f"There is no actor with id {actor_id} in this cluster.")
        if not actor.node_id or not actor.pid:
            raise RayStateApiException(f"The actor {actor_id} has not started on any node: there is no log of it.")
        node_id, pid = actor.node_id, actor.pid
    if not node_id and not node_ip:
        raise ValidationError("node_id or node_ip must be provided as constructor arguments when no actor or task_id is supplied as arguments.")
    directory = _logs_of(address, node_id, node_ip, timeout)
    if submission_id:
        filename = f"job-driver-{submission_id}.log"
    elif pid:
        names = sorted(path.name for path in directory.glob(f"worker-*-{pid}.{suffix}"))
        if not names:
            raise RayStateApiException(f"There is no log of a worker with pid {pid} in {directory}.")
        filename = names[-1]
    if not filename:
        raise ValidationError("one of filename, actor_id, task_id, pid, submission_id is needed to choose a log")
    path = (directory / filename).resolve()
    if directory.resolve() not in path.parents:
        raise ValidationError(f"{filename!r} is not the name of a log file")
    if not path.is_file():
        raise RayStateApiException(f"A file is not found at: {path}")
    return path


def _start_of_tail(path: Path, lines: int) -> int:
    """Where the last `lines` lines begin."""
    if lines < 0:
        return 0
    with open(path, "rb") as file:
        at = file.seek(0, os.SEEK_END)
        rest = lines
        last = at
        while at > 0 and lines > 0:
            size = min(_CHUNK, at)
            at -= size
            file.seek(at)
            block = file.read(size)
            while (newline := block.rfind(b"\n")) >= 0:
                if at + newline + 1 < last:
                    rest -= 1
                    if rest == 0:
                        return at + newline + 1
                block = block[:newline]
        return 0 if lines > 0 else last


def _read(path: Path, tail: int, follow: bool, interval_s: float) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(_start_of_tail(path, tail))
        while True:
            block = file.read(_CHUNK)
            if block:
                yield block
            elif follow:
                time.sleep(interval_s)
            else:
                return


def get_log(address: str | None = None, node_id: str | None = None, node_ip: str | None = None, filename: str | None = None, actor_id: str | None = None,
            task_id: str | None = None, pid: int | str | None = None, follow: bool = False, tail: int = -1, timeout: int = 30, suffix: str = "out",
            encoding: str | None = "utf-8", errors: str = "strict", submission_id: str | None = None, attempt_number: int = 0,
            _interval: float | None = None, filter_ansi_code: bool = False) -> Iterator[Any]:
    """A log in pieces of text (bytes when encoding is None): of an actor, a worker (pid), a submitted job, or a file by name.

    tail: only the last lines; -1: all. follow: goes on until the caller stops, looking every `_interval` seconds (0.5). timeout: seconds, to find the
    file. Errors: ValueError (what is asked for is not clear), RayStateApiException (there is no such log).
    """
    if task_id is not None:
        raise not_in_release("get_log(task_id=...): which part of its worker's log belongs to a task is not recorded")
    path = _choose(resolve_address(address), node_id, node_ip, filename, actor_id, pid, submission_id, suffix, timeout)
    decoder = codecs.getincrementaldecoder(encoding)(errors) if encoding else None
    for block in _read(path, tail, follow, _interval or _DEFAULT_INTERVAL_S):
        if filter_ansi_code:
            block = _ANSI.sub(b"", block)
        yield decoder.decode(block) if decoder else block
    if decoder:
        rest = decoder.decode(b"", final=True)
        if rest:
            yield rest
