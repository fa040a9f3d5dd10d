"""ray.cluster_utils.Cluster: several nodes on this machine, each with daemons of its own.

It serves tests of what happens between nodes.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any, Iterator

import ray
from ray import _raylet
from ray._private.absent import not_in_release
from ray._private.daemons import Daemon, start_again
from ray._private.job_http import dashboard_of
from ray._private.local_cluster import reap, setting_text, temp_root
from ray._private.session import global_worker

_DEFAULTS: dict[str, Any] = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 150 * 1024 * 1024}
_START_OPTIONS = (
    "num_cpus",
    "num_gpus",
    "memory",
    "resources",
    "labels",
    "object_store_memory",
    "node_name",
    "plasma_directory",
    "include_dashboard",
    "dashboard_host",
    "dashboard_port",
    "metrics_export_port",
)
# Options of Ray's nodes that do not exist here; a value that requests nothing is accepted.
_ABSENT_OPTIONS = {
    "dashboard_agent_listen_port": (None, 0),
    "object_spilling_directory": (None, ""),
}
_IGNORED = (
    "min_worker_port",
    "max_worker_port",
    "worker_port_list",
    "node_manager_port",
    "object_manager_port",
)
_NAMES = {
    "ray-head": "gcs_server",
    "ray-node-manager": "raylet",
    "ray-object-store": "plasma_store",
}
_GRACE_S = 5.0


def __getattr__(name: str) -> Any:
    if name == "AutoscalingCluster":
        raise not_in_release("autoscaling (ray.cluster_utils.AutoscalingCluster)")
    raise AttributeError(f"module 'ray.cluster_utils' has no attribute '{name}'")


class Node:
    """One node of a Cluster: its addresses, and the means to break it.

    Its processes are the daemons: raylet, plasma_store and, on the head's node, gcs_server.
    """

    def __init__(self, started: dict, head: bool):
        self._started = started
        self._head = head
        self._daemons = {
            _NAMES[name]: Daemon(pid, start_time) for name, pid, start_time in started["processes"]
        }
        self._gcs = self._daemons.get("gcs_server")

    node_id = property(lambda self: self._started["node_id"], doc="56 hex digits.")
    session_name = property(lambda self: self._started["session_name"])
    node_ip_address = property(lambda self: self._started["node_ip"])
    raylet_socket_name = property(lambda self: self._started["node_manager_socket"])
    plasma_store_socket_name = property(lambda self: self._started["object_store_socket"])
    address = gcs_address = property(
        lambda self: self._started["head_address"], doc="IP:PORT of the cluster's head."
    )
    node_manager_port = property(lambda self: self._started["node_manager_port"])

    @property
    def webui_url(self) -> str:
        """IP:PORT of the head's HTTP interface.

        Empty when the cluster has none, or while the head does not run.
        """
        try:
            return dashboard_of(self.gcs_address)
        except Exception:
            # Each way of being unreachable raises an error of another class.
            return ""

    @property
    def unique_id(self) -> str:
        """IP:SOCKET: the node's address and its store's socket. ray.nodes() has node_id."""
        return f"{self.node_ip_address}:{self.plasma_store_socket_name}"

    @property
    def address_info(self) -> dict[str, Any]:
        """The same entries as ray.init().address_info."""
        return {
            "node_ip_address": self.node_ip_address,
            "raylet_ip_address": self.node_ip_address,
            "redis_address": None,
            "object_store_address": self.plasma_store_socket_name,
            "raylet_socket_name": self.raylet_socket_name,
            "webui_url": self.webui_url,
            "session_dir": self.get_session_dir_path(),
            "metrics_export_port": self._started["metrics_export_port"],
            "gcs_address": self.gcs_address,
            "address": self.address,
            "dashboard_agent_listen_port": 0,
            "node_id": self.node_id,
        }

    def is_head(self) -> bool:
        """Whether the head runs with this node."""
        return self._head

    def get_session_dir_path(self) -> str:
        """The session directory."""
        return self._started["session_dir"]

    def get_logs_dir_path(self) -> str:
        """The directory of the log files."""
        return os.path.join(self.get_session_dir_path(), "logs")

    def live_processes(self) -> list[tuple[str, Daemon]]:
        """Returns (name, process) of the daemons that run."""
        return [(name, daemon) for name, daemon in self._daemons.items() if daemon.poll() is None]

    def dead_processes(self) -> list[tuple[str, Daemon]]:
        """Returns (name, process) of the daemons that ended without a method of this object."""
        return [
            (name, daemon) for name, daemon in self._daemons.items() if daemon.poll() is not None
        ]

    def any_processes_alive(self) -> bool:
        """Whether a daemon of the node runs."""
        return bool(self.live_processes())

    def remaining_processes_alive(self) -> bool:
        """Whether all daemons run that no method of this object has ended."""
        return not self.dead_processes()

    def kill_raylet(self) -> None:
        """Kills the node's raylet with its store (SIGKILL), as if the machine had failed."""
        self._kill("raylet", "plasma_store")

    def kill_gcs_server(self) -> None:
        """Kills the cluster's head (SIGKILL), when it is on this node."""
        self._kill("gcs_server")

    def _kill(self, *names: str) -> None:
        for name in names:
            daemon = self._daemons.pop(name, None)
            if daemon:
                daemon.kill()

    def start_gcs_server(self) -> None:
        """Restarts the head on its address with its durable state; returns when it is ready.

        Raises RuntimeError when this node never had a head, or has one that was not killed.
        """
        if self._gcs is None or "gcs_server" in self._daemons:
            raise RuntimeError("only the node of a head that was killed can start it again")
        self._gcs = self._daemons["gcs_server"] = start_again(
            self._gcs,
            self.gcs_address,
            self._started["lifeline_fd"],
            os.path.join(self.get_logs_dir_path(), "ray-head.err"),
        )

    def _stop(self, graceful: bool) -> None:
        daemons = list(self._daemons.values())
        if graceful:
            _raylet.stop_processes(
                [
                    ("", daemon.pid, daemon.start_time)
                    for daemon in daemons
                    if daemon.poll() is None
                ],
                _GRACE_S,
            )
        for daemon in daemons:
            daemon.kill()
        self._daemons.clear()

        # Killed daemons leave their sockets behind.
        shutil.rmtree(
            os.path.join(os.path.dirname(self.get_logs_dir_path()), "sockets"), ignore_errors=True
        )
        fd, self._started["lifeline_fd"] = self._started["lifeline_fd"], -1
        if fd >= 0:
            os.close(fd)


class Cluster:
    """A head's node and others, which can be added and removed.

    Everything ends with this process, however it ends; if shutdown_at_exit is false, with
    shutdown() or `rayctl stop`.

    initialize_head: start the head's node, with head_node_args as for add_node(). connect: connect
    this process; raises RuntimeError without initialize_head.
    """

    def __init__(
        self,
        initialize_head: bool = False,
        connect: bool = False,
        head_node_args: dict[str, Any] | None = None,
        shutdown_at_exit: bool = True,
    ):
        self.head_node: Node | None = None
        self.worker_nodes: set[Node] = set()
        self.connected = False
        self._at_exit = shutdown_at_exit
        self._settings: dict[str, str] = {}
        if connect and not initialize_head:
            raise RuntimeError("Cannot connect to uninitialized cluster.")
        if shutdown_at_exit:
            atexit.register(self.shutdown)
        if initialize_head:
            self.add_node(**(head_node_args or {}))
            if connect:
                self.connect()

    @property
    def address(self) -> str | None:
        """IP:PORT of the head; None without one."""
        return self.head_node.address if self.head_node else None

    gcs_address = address

    @property
    def webui_url(self) -> str | None:
        """The head node's webui_url (empty: no HTTP interface); None without a head."""
        return self.head_node.webui_url if self.head_node else None

    def connect(self, namespace: str | None = None):
        """Connects this process (ray.init())."""
        assert self.address is not None, "the cluster has no head: call add_node() first"
        assert not self.connected, "this process is connected to the cluster"
        context = ray.init(namespace=namespace, ignore_reinit_error=True, address=self.address)
        self.connected = True
        return context

    def add_node(self, wait: bool = True, **node_args: Any) -> Node:
        """Starts a node, the first one with the head; returns when it can take work.

        node_args: num_cpus (1), num_gpus (0), memory and object_store_memory (bytes; 150 MiB),
        resources, labels, node_name, node_ip_address, temp_dir, plasma_directory, env_vars,
        _system_config (the head's applies to the other nodes, too). Raises TypeError for other
        names, NotImplementedError for features that this release does not have, RuntimeError when
        a daemon does not start.
        """
        args = {**_DEFAULTS, **node_args}
        options = {name: args.pop(name) for name in _START_OPTIONS if args.get(name) is not None}
        settings = args.pop("_system_config", None) or {}
        env = args.pop("env_vars", None) or {}
        ip, temp_dir = args.pop("node_ip_address", None), args.pop("temp_dir", None)
        _check_rest(args)
        head = self.head_node is None

        reap()
        settings = {
            **self._settings,
            **{name: setting_text(value) for name, value in settings.items()},
        }
        options.update(
            head=head,
            port=0,
            address=self.address or "",
            temp_dir=temp_dir,
            python_executable=sys.executable,
            system_config=settings,
            node_ip=ip or os.environ.get("RAY_NODE_IP_ADDRESS") or "127.0.0.1",
            private_to_parent=self._at_exit,
        )
        with _environment(env):
            node = Node(_raylet.start_node(options), head)
        if head:
            self.head_node, self._settings = node, settings
            self._publish(temp_dir)
        else:
            self.worker_nodes.add(node)
        return node

    def remove_node(self, node: Node, allow_graceful: bool = True) -> None:
        """Ends a node's processes with SIGTERM (allow_graceful) or SIGKILL.

        Raises KeyError when the node is not of this cluster. The node that this process is
        connected to is not removed: ray.shutdown() is called, and ValueError raised.
        """
        if node is not self.head_node and node not in self.worker_nodes:
            raise KeyError(node)
        if (
            global_worker.connected
            and global_worker.context.get("node_manager_socket") == node.raylet_socket_name
        ):
            ray.shutdown()
            raise ValueError(
                "Removing a node that is connected to this Ray client is not allowed because it "
                "will break the driver."
            )
        node._stop(allow_graceful)
        if node is self.head_node:
            self.head_node = None
            self._forget()
        else:
            self.worker_nodes.remove(node)

    def _publish(self, temp_dir: str | None) -> None:
        """Records the address where ray.init(address="auto") of other programs finds it."""
        self._address_file = os.path.join(temp_root(temp_dir), "ray_current_cluster")
        self._published = self.address or ""
        draft = f"{self._address_file}.{os.getpid()}.{os.urandom(8).hex()}"
        with open(draft, "x") as file:
            file.write(self._published)
        # This does not follow a link that another user put there.
        os.replace(draft, self._address_file)

    def _forget(self) -> None:
        try:
            with open(self._address_file) as file:
                ours = file.read().strip() == self._published
            if ours:
                os.unlink(self._address_file)
        except OSError:
            # The end of another cluster has removed the file.
            pass

    def wait_for_nodes(self, timeout: float = 30) -> None:
        """Waits until the head counts as many living nodes as this cluster has.

        Raises TimeoutError after `timeout` seconds.
        """
        expected = len(self.list_all_nodes())
        deadline = time.monotonic() + timeout
        while True:
            alive = self._count_alive()
            if alive == expected:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"Timed out while waiting for nodes: {expected} expected, {alive} alive."
                )
            time.sleep(0.05)

    def _count_alive(self) -> int:
        if global_worker.connected and global_worker.context["head_address"] == self.address:
            nodes = ray.nodes()
        else:
            programs = (
                self.head_node._gcs.directory if self.head_node and self.head_node._gcs else ""
            )
            asked = subprocess.run(
                [
                    os.path.join(programs, "rayctl"),
                    "nodes",
                    "--format",
                    "json",
                    f"--address={self.address}",
                ],
                capture_output=True,
            )
            nodes = json.loads(asked.stdout) if asked.returncode == 0 else []
        return sum(node["Alive"] for node in nodes)

    def list_all_nodes(self) -> list[Node]:
        """Returns the nodes, the head's first."""
        return ([self.head_node] if self.head_node else []) + list(self.worker_nodes)

    def remaining_processes_alive(self) -> bool:
        """Whether all daemons run that no method of a node has ended."""
        return all(node.remaining_processes_alive() for node in self.list_all_nodes())

    def shutdown(self) -> None:
        """Disconnects this process and ends all nodes. May be called more than once."""
        if self.connected or (
            global_worker.connected and global_worker.context["head_address"] == self.address
        ):
            ray.shutdown()
            self.connected = False
        for node in [*self.worker_nodes, *([self.head_node] if self.head_node else [])]:
            self.remove_node(node)
        self._settings = {}
        atexit.unregister(self.shutdown)


def _check_rest(args: dict[str, Any]) -> None:
    for name, value in args.items():
        if name in _ABSENT_OPTIONS:
            if value not in _ABSENT_OPTIONS[name]:
                raise not_in_release(f"nodes with {name}={value!r}")
        elif name not in _DEFAULTS and name not in _START_OPTIONS and name not in _IGNORED:
            raise TypeError(f"add_node() got an unexpected keyword argument '{name}'")


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Sets variables for the processes that are started inside the block."""
    saved = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in saved.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
