"""Clusters of this machine, as ray.init() finds, joins, starts and ends them."""

from __future__ import annotations

import os
import stat
import sys

from ray import _raylet
from ray._private.absent import not_in_release
from ray._private.amounts import cut_amount, cut_amounts
from ray._private.error_codes import (
    IO,
    NOT_FOUND,
    PROTOCOL,
    TIMEOUT,
    UNAVAILABLE,
    WRONG_CLUSTER,
    WRONG_VERSION,
)

# absent.py says why this is not typing.TYPE_CHECKING.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ray._private.init_arguments import InitArguments

_NEW_CLUSTER_ONLY = (
    "num_cpus",
    "num_gpus",
    "resources",
    "labels",
    "object_store_memory",
    "_system_config",
    "_enable_object_reconstruction",
    "_node_name",
)
_unreaped: list[int] = []


def temp_root(given: str | None) -> str:
    """The root of session directories, chosen as launch/node/session.cc does.

    It is `given`, else RAY_TMPDIR, else /tmp/ray, else a directory of this user when /tmp/ray
    belongs to another one.
    """
    root = given or os.environ.get("RAY_TMPDIR")
    if root:
        return root
    try:
        ours = os.lstat("/tmp/ray").st_uid == os.geteuid()
    except OSError:
        ours = True
    return "/tmp/ray" if ours else f"/tmp/ray-{os.geteuid()}"


def _temp_root(hidden: dict) -> str:
    return temp_root(hidden.get("_temp_dir"))


def _find(address: str, source: str, timeout_s: float) -> dict:
    """Finds the node of this machine that belongs to the cluster at `address`.

    `source` says where the address comes from ("" for the caller). Raises ConnectionError with
    address, cause and remedy.
    """
    token = False
    try:
        _raylet.auth_token(False)
        token = True
        socket, node = _raylet.find_node(address, timeout_s)
    except Exception as error:
        if getattr(error, "code", None) in (
            UNAVAILABLE,
            TIMEOUT,
            IO,
            NOT_FOUND,
            WRONG_VERSION,
            WRONG_CLUSTER,
            PROTOCOL,
        ):
            reason = getattr(error, "client_exc", None) or error
            remedy = (
                f"correct or remove {source}" if source else "call ray.init() without an address"
            )
            text = (
                "Could not connect to a Ray cluster at "
                f"{address}{f' (from {source})' if source else ''}: {reason}"
            )
            # Without a token no server was contacted. The reason then only says how to get a token.
            # A head that was asked, and has no node for this program, has named the remedy itself.
            if token and error.code != NOT_FOUND:
                port = address.rpartition(":")[2]
                command = f"rayctl start --head{f' --port={port}' if port.isdigit() else ''}"
                text += f". Is it running there? Start one with `{command}`, or {remedy}."
            raise ConnectionError(text) from None
        raise
    return {
        "node_manager_socket": socket,
        "head_address": address,
        "session_dir": node["_session_dir"],
        "metrics_export_port": node["MetricsExportPort"],
    }


def _recorded_address(hidden: dict) -> str | None:
    """The address that `rayctl start` recorded, None when there is none.

    A file of another user is not believed, since the token goes to this address; only root's is. A
    FIFO must not block this process.
    """
    try:
        fd = os.open(
            os.path.join(_temp_root(hidden), "ray_current_cluster"),
            os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK,
        )
        with open(fd) as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or info.st_uid not in (os.geteuid(), 0):
                return None
            return file.read(4096).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _running(hidden: dict, wanted: bool) -> tuple[str, dict | None]:
    """Finds a running cluster of this machine; returns its address and node.

    The cluster that was started for all programs comes first; then, only if one is `wanted`
    (address="auto"), the newest that another program started for itself. Without one,
    ConnectionError is raised if it was wanted, else ("", None) is returned.
    """
    failure = None
    found = _recorded_address(hidden)
    if found:
        try:
            return found, _find(
                found,
                os.path.join(_temp_root(hidden), "ray_current_cluster"),
                10.0 if wanted else 2.0,
            )
        except (ConnectionError, ValueError) as error:
            # The address file of a crashed cluster must not prevent a new one.
            failure = error
    if not wanted:
        return "", None
    try:
        found = _raylet.running_cluster(_temp_root(hidden))
        return found, _find(found, "", 10.0)
    except Exception as error:
        raise failure or ConnectionError(
            "Could not find any running Ray instance. Please specify the one to connect to by "
            "setting `--address` flag or `RAY_ADDRESS` environment "
            f"variable, or start one with `rayctl start --head`: {error}"
        ) from None


def join(given: InitArguments) -> dict | None:
    """Returns the node of a running cluster to join, None when a new cluster is to be started."""
    address, hidden = given.address, given.hidden
    if address == "local":
        return None
    if address is not None and not isinstance(address, str):
        raise TypeError(f"address: expected a string, got {type(address).__name__}")
    explicit, source = None if address in (None, "", "auto") else address, ""
    if not explicit:
        explicit, source = os.environ.get("RAY_ADDRESS") or None, "RAY_ADDRESS"
    if explicit == "local":
        return None
    if explicit == "auto":
        address, explicit = "auto", None
    if explicit and "://" in explicit:
        scheme = explicit.split("://")[0]
        if scheme == "ray":
            raise not_in_release("the Ray client (ray://)")
        raise RuntimeError(
            f"address {explicit!r}: nothing here serves {scheme}:// addresses; give HOST:PORT, "
            "'auto' or 'local'"
        )
    if explicit:
        found, node = explicit, _find(explicit, source, 10.0)
    else:
        found, node = _running(hidden, address == "auto")
    if node is None:
        return None
    for key in _NEW_CLUSTER_ONLY:
        value = getattr(given, key, hidden.get(key))
        if value is not None and value != {}:
            raise ValueError(
                f"When connecting to an existing cluster, {key} must not be provided. The one at "
                f"{found} was found; address='local' starts another."
            )
    return node


_warned: set = set()


def warn_once(text: str):
    """Warns the user about the start of a node; nodes with the same options warn only once."""
    if text not in _warned:
        _warned.add(text)
        import logging

        logging.getLogger("ray").warning("%s.", text)


def setting_text(value) -> str:
    """The value of a setting as the daemons read it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def start(given: InitArguments) -> dict:
    """Starts a cluster that ends with this process."""
    hidden = given.hidden
    memory = hidden.get("_memory")
    reap()
    node = _raylet.start_node(
        {
            "head": True,
            "port": 0,
            "node_ip": hidden.get("_node_ip_address")
            or os.environ.get("RAY_NODE_IP_ADDRESS")
            or "127.0.0.1",
            "num_cpus": given.num_cpus,
            "num_gpus": given.num_gpus,
            "resources": cut_amounts(given.resources or {}),
            "labels": given.labels,
            "object_store_memory": given.object_store_memory,
            "memory": memory and cut_amount("memory", memory),
            "node_name": hidden.get("_node_name"),
            "temp_dir": hidden.get("_temp_dir"),
            "plasma_directory": hidden.get("_plasma_directory"),
            "python_executable": sys.executable,
            "system_config": {
                key: setting_text(value)
                for key, value in (hidden.get("_system_config") or {}).items()
            },
            "private_to_parent": True,
            "include_dashboard": given.include_dashboard is not False,
            "dashboard_host": given.dashboard_host,
            "dashboard_port": given.dashboard_port,
            "metrics_export_port": hidden.get("_metrics_export_port") or 0,
        }
    )
    node["started"] = True
    return node


def stop_cluster(node: dict, wait: bool):
    """Ends a cluster that this process started.

    Closing the lifeline ends the daemons, which end their workers. `wait` returns after their end.
    """
    try:
        os.unlink(os.path.join(node["session_dir"], "head_address"))
    except OSError:
        pass
    if node["lifeline_fd"] >= 0:
        os.close(node["lifeline_fd"])
    _unreaped.extend(pid for _, pid, _ in node["processes"])
    if wait:
        _raylet.stop_processes(node["processes"], 5.0)
        import shutil  # Imported here: at the top it would double the time of `import ray`.

        for kept_by_the_killed in ("sockets", "runtime_resources"):
            shutil.rmtree(os.path.join(node["session_dir"], kept_by_the_killed), ignore_errors=True)
    reap()


def reap():
    """Collects ended daemons that are children of this process."""
    for pid in list(_unreaped):
        try:
            done, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            done = pid
        if done:
            _unreaped.remove(pid)
