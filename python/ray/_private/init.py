"""ray.init(): finds or starts a cluster and connects this process to it."""

from __future__ import annotations

import collections.abc
import os
import stat
import sys

from ray import _raylet
from ray._private import worker as worker_module
from ray._private.errors import (
    IO,
    NOT_FOUND,
    PROTOCOL,
    TIMEOUT,
    UNAVAILABLE,
    WRONG_CLUSTER,
    WRONG_VERSION,
)
from ray._private.interrupts import deferred_interrupts
from ray._private.options import (
    check_number,
    check_resources,
    cut_amount,
    cut_amounts,
    not_in_release,
)

TYPE_CHECKING = False  # Not typing.TYPE_CHECKING, see absent.py.
if TYPE_CHECKING:
    from ray._private.runtime_env.submit import JobEnv

_UNDERSCORE_KEYWORDS = (
    "_enable_object_reconstruction",
    "_plasma_directory",
    "object_spilling_directory",
    "_node_ip_address",
    "_driver_object_store_memory",
    "_memory",
    "_redis_username",
    "_redis_password",
    "_temp_dir",
    "_metrics_export_port",
    "_system_config",
    "_tracing_startup_hook",
    "_node_name",
    "_skip_env_hook",
)
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


class RayContext(collections.abc.Mapping):
    """The result of ray.init(): facts about the session.

    It is a context manager that leaves the session, and a mapping with the entries of
    `address_info`.
    """

    def __init__(self, address_info: dict):
        from ray import __commit__, __version__

        self.dashboard_url = address_info.get("webui_url")
        self.python_version = "{}.{}.{}".format(*sys.version_info[:3])
        self.ray_version = __version__
        self.ray_commit = __commit__
        self.address_info = address_info

    def __getitem__(self, key):
        return self.address_info[key]

    def __iter__(self):
        return iter(self.address_info)

    def __len__(self):
        return len(self.address_info)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.disconnect()

    def disconnect(self):
        worker_module.shutdown()

    def _repr_html_(self):
        """The table that notebooks show."""
        from html import escape

        rows = {
            "Python version": self.python_version,
            "Ray version": self.ray_version,
            "Dashboard": self.dashboard_url or "none",
        }
        if self.dashboard_url:
            rows["Dashboard"] = f"http://{self.dashboard_url}"
        return (
            "<table>"
            + "".join(
                f"<tr><td><b>{name}</b></td><td>{escape(value)}</td></tr>"
                for name, value in rows.items()
            )
            + "</table>"
        )

    def __repr__(self):
        return (
            f"RayContext(dashboard_url={self.dashboard_url!r}, "
            f"python_version={self.python_version!r}, ray_version={self.ray_version!r}, "
            f"ray_commit={self.ray_commit!r}, address_info={self.address_info!r})"
        )


def init(  # Ray's signature
    address=None,
    *,
    num_cpus=None,
    num_gpus=None,
    resources=None,
    labels=None,
    object_store_memory=None,
    local_mode=False,
    ignore_reinit_error=False,
    include_dashboard=None,
    dashboard_host="127.0.0.1",
    dashboard_port=None,
    job_config=None,
    configure_logging=True,
    logging_level="info",
    logging_format=None,
    logging_config=None,
    log_to_driver=None,
    namespace=None,
    runtime_env=None,
    enable_resource_isolation=False,
    cgroup_path=None,
    system_reserved_cpu=None,
    system_reserved_memory=None,
    proxy_server_url=None,
    **kwargs,
) -> RayContext:
    """Starts a cluster on this machine, or joins a running one.

    address: "HOST:PORT" of a head; "local" starts a cluster; "auto" joins the one that `rayctl
    start` started on this machine, else the newest that another program started for itself. None
    means RAY_ADDRESS, else the cluster that `rayctl start` started here, else a new one.

    The node of a new cluster: num_cpus, num_gpus (whole numbers), resources (amounts by name),
    labels, object_store_memory and _memory (bytes), _node_name, _node_ip_address (127.0.0.1),
    _temp_dir (root of the session directories), _plasma_directory (of the object store's memory),
    _system_config (settings).

    The job: namespace (of named actors; by default a new one), runtime_env, job_config,
    log_to_driver (print the workers' output here).

    This process: logging_level and logging_format of the logger "ray", unless configure_logging is
    False. A SIGTERM handler that calls sys.exit is installed unless there is a handler; Ctrl-C is
    deferred until a started cluster is up.

    Returns a RayContext: facts about the session, and a context manager that leaves it.

    Raises ConnectionError when there is no such cluster; ValueError and TypeError for bad values,
    and for a new cluster's options when joining one; RuntimeError when already connected (unless
    ignore_reinit_error), for unknown keywords and in a forked child; NotImplementedError, naming
    it, for an option that is not in this release.
    """
    given = dict(locals())
    worker_module.check_not_forked()
    worker_module.check_not_exiting()
    _check_arguments(given)
    with worker_module._lock:
        if worker_module.is_initialized():
            if ignore_reinit_error:
                return RayContext(
                    worker_module.global_worker.address_info
                    or _address_info(worker_module.global_worker.context, None)
                )
            raise RuntimeError(
                "Maybe you called ray.init twice by accident? This error can be suppressed by "
                "passing in 'ignore_reinit_error=True' or by calling 'ray.shutdown()' prior to "
                "'ray.init()'."
            )
        _install_sigterm_handler()
        if logging_config is not None:
            from ray._private import logging_config as logging_setup

            logging_setup.apply(logging_config)
        elif configure_logging:
            _configure_logging(logging_level, logging_format)
        job = _job_config(given)
        node = {}
        try:
            node = _join(given)
            with deferred_interrupts():
                node = node or _start(given)
                _connect(node, job, given)
            if given["job_env"]:
                given["job_env"].send()
        except BaseException:
            if given["job_env"]:
                given["job_env"].discard()
            if worker_module.is_initialized():
                worker_module.shutdown()
            elif node and node.get("started"):
                stop_cluster(node, False)
            raise
        return RayContext(worker_module.global_worker.address_info)


def _check_arguments(given: dict):
    hidden = given["kwargs"]
    if "storage" in hidden:
        raise RuntimeError(
            "Cluster-wide storage configuration has been removed. The last Ray version "
            "supporting the `storage` argument is `ray==2.47`."
        )
    if "allow_multiple" in hidden:
        raise RuntimeError(
            "`allow_multiple` argument is passed to `ray.init` when the ray client is not used."
        )
    unknown = [key for key in hidden if key not in _UNDERSCORE_KEYWORDS]
    if unknown:
        raise RuntimeError(f"Unknown keyword argument(s): {', '.join(unknown)}")
    if given["local_mode"]:
        raise RuntimeError(
            "`local_mode` is no longer supported. For interactive debugging consider using the "
            "Ray distributed debugger."
        )
    for name in ("num_cpus", "num_gpus"):
        value = given[name]
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
            check_number(name, value)
            if value != int(value):
                raise ValueError(f"{name}: a node's amount must be a whole number, got {value}")
    if given["resources"] is not None:
        if not isinstance(given["resources"], dict):
            raise TypeError(f"resources: expected a dict, got {type(given['resources']).__name__}")
        check_resources(given["resources"])
    if given["labels"] is not None:
        _check_labels(given["labels"])
    memory = given["object_store_memory"]
    if memory is not None and (
        isinstance(memory, bool) or not isinstance(memory, (int, float)) or not 0 < memory < 2**63
    ):
        raise ValueError(
            f"object_store_memory: expected a positive number of bytes, got {memory!r}"
        )
    check_number("memory", hidden.get("_memory"))
    if given["logging_config"] is not None:
        from ray._private.logging_config import LoggingConfig

        if not isinstance(given["logging_config"], LoggingConfig):
            raise AttributeError(
                "logging_config: expected a ray.LoggingConfig, got "
                f"{type(given['logging_config']).__name__}"
            )
    port = given["dashboard_port"]
    if port is not None and (
        isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535
    ):
        raise ValueError(
            f"dashboard_port: expected a port from 0 (any free one) to 65535, got {port!r}"
        )
    if not isinstance(given["dashboard_host"], str):
        raise TypeError(
            f"dashboard_host: expected an address, got {type(given['dashboard_host']).__name__}"
        )
    port = hidden.get("_metrics_export_port")
    if port is not None and (
        isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535
    ):
        raise ValueError(
            f"_metrics_export_port: expected a port from 0 (any free one) to 65535, got {port!r}"
        )
    if given["namespace"] is not None:
        if not isinstance(given["namespace"], str):
            raise TypeError("namespace must be None or a string.")
        if not given["namespace"]:
            raise ValueError('"" is not a valid namespace. Pass None to not specify a namespace.')
    if "_system_config" in hidden and not isinstance(hidden["_system_config"], (dict, type(None))):
        raise TypeError("The _system_config must be a dict.")
    _check_absent(given, hidden)


def _check_absent(given: dict, hidden: dict):
    if (
        given["enable_resource_isolation"]
        or given["cgroup_path"]
        or given["system_reserved_cpu"]
        or given["system_reserved_memory"]
    ):
        raise not_in_release("resource isolation by cgroups (enable_resource_isolation)")
    if given["proxy_server_url"]:
        raise not_in_release("proxy_server_url")
    for key, feature in (
        ("_enable_object_reconstruction", "object reconstruction"),
        ("object_spilling_directory", "object spilling"),
        ("_redis_username", "Redis"),
        ("_redis_password", "Redis"),
        ("_tracing_startup_hook", "tracing"),
    ):
        if hidden.get(key):
            raise not_in_release(f"{feature} ({key})")
    env = given["runtime_env"]
    if env is not None and not isinstance(env, dict):
        raise AttributeError(
            "runtime_env: expected a dict or a ray.runtime_env.RuntimeEnv, got "
            f"{type(env).__name__}"
        )


def _check_labels(labels):
    import re

    if not isinstance(labels, dict):
        raise TypeError(f"labels: expected a dict, got {type(labels).__name__}")
    word = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
    for key, value in labels.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("labels: keys and values are strings")
        prefix, _, name = key.rpartition("/")
        if key == "ray.io/node-id":
            raise ValueError(f"labels: {key!r} is given by the cluster")
        if not word.fullmatch(name) or len(prefix) > 253 or (value and not word.fullmatch(value)):
            raise ValueError(
                f"labels: {key!r}={value!r}: at most 63 letters, digits, '-', '_' and '.', first "
                "and last alphanumeric"
            )


def _install_sigterm_handler():
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        import logging

        logging.getLogger("ray").warning(
            "ray.init() was called outside of the main thread: no SIGTERM handler is installed, "
            "so workers may not be stopped cleanly by it."
        )
        return
    if signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, None):
        from ray._private import sigterm

        sigterm.install(_leave)


def _leave(signum, frame):
    sys.exit(signum)


def _configure_logging(level, fmt):
    if level == "info" and os.environ.get("RAY_LOGGER_LEVEL"):
        level = os.environ["RAY_LOGGER_LEVEL"]
        if level.lower() not in ("debug", "info", "warning", "error", "critical"):
            raise ValueError(
                f"RAY_LOGGER_LEVEL is {level!r}: it takes debug, info, warning, error or critical"
            )
    if "logging" in sys.modules or fmt is not None or level not in ("info", 20):
        from ray._private.ray_logger import LOGGER_FORMAT, configure

        configure(level, fmt or LOGGER_FORMAT)


def temp_root(given: str | None) -> str:
    """The root of session directories, chosen as common/launch/session.cc does.

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
            # Without a token no server was contacted: the reason says how to get one, no more.
            if token:
                text += f". Is it running there? Start one with `rayctl start --head`, or {remedy}."
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


def _join(given: dict) -> dict | None:
    """Returns the node of a running cluster to join, None when a new cluster is to be started."""
    address, hidden = given["address"], given["kwargs"]
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
        value = given.get(key, hidden.get(key))
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


def _setting(value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _start(given: dict) -> dict:
    hidden = given["kwargs"]
    memory = hidden.get("_memory")
    reap()
    node = _raylet.start_node(
        {
            "head": True,
            "port": 0,
            "node_ip": hidden.get("_node_ip_address")
            or os.environ.get("RAY_NODE_IP_ADDRESS")
            or "127.0.0.1",
            "num_cpus": given["num_cpus"],
            "num_gpus": given["num_gpus"],
            "resources": cut_amounts(given["resources"] or {}),
            "labels": given["labels"],
            "object_store_memory": given["object_store_memory"],
            "memory": memory and cut_amount("memory", memory),
            "node_name": hidden.get("_node_name"),
            "temp_dir": hidden.get("_temp_dir"),
            "plasma_directory": hidden.get("_plasma_directory"),
            "python_executable": sys.executable,
            "system_config": {
                key: _setting(value) for key, value in (hidden.get("_system_config") or {}).items()
            },
            "private_to_parent": True,
            "include_dashboard": given["include_dashboard"] is not False,
            "dashboard_host": given["dashboard_host"],
            "dashboard_port": given["dashboard_port"],
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


def _random_namespace() -> str:
    h = os.urandom(16).hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def _driver_sys_path(has_working_dir: bool) -> list[str]:
    """Where workers find the driver's modules.

    That is the script's directory, the working directory, and what PYTHONPATH and the program put
    on sys.path, without the interpreter's own directories: workers have their own.
    """
    main = sys.modules.get("__main__")
    here = (
        [os.path.dirname(os.path.abspath(main.__file__))] if getattr(main, "__file__", None) else []
    )
    here.append(os.getcwd())
    entries = list(here)
    entries += [
        os.path.abspath(entry)
        for entry in (*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path)
        if entry
    ]
    own = tuple(
        os.path.join(prefix, "lib")
        for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, "/usr/local"}
    )
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    # The files of the working_dir replace these directories.
    left_out = here if has_working_dir else []
    return [
        entry
        for entry in dict.fromkeys(entries)
        if os.path.realpath(entry) != ours and not entry.startswith(own) and entry not in left_out
    ]


def _job_env(given: dict, config, submitted: dict) -> JobEnv | None:
    """The job's runtime environment; the argument's fields come before those of the JobConfig.

    Returns None, without importing anything, when none is asked for.
    """
    env = dict((config.runtime_env if config is not None else None) or {})
    own = given["runtime_env"] or {}
    if env.get("env_vars") and own.get("env_vars") and isinstance(own["env_vars"], dict):
        own = {**own, "env_vars": {**env["env_vars"], **own["env_vars"]}}
    env.update(own)
    if not env and not submitted and not os.environ.get("RAY_RUNTIME_ENV_HOOK"):
        return None
    from ray._private.runtime_env.submit import JobEnv, merge_with_submitted, run_hook

    if not given["kwargs"].get("_skip_env_hook"):
        env = run_hook(env)
    return JobEnv(merge_with_submitted(env, submitted))


def _submitted_config(text: str) -> dict:
    import json

    try:
        config = json.loads(text)
        if not isinstance(config, dict) or not all(
            isinstance(config.get(field) or {}, dict) for field in ("metadata", "runtime_env")
        ):
            raise ValueError("expected a JSON object whose metadata and runtime_env are objects")
    except ValueError as error:
        raise ValueError(
            f"RAY_JOB_CONFIG_JSON_ENV_VAR is {text[:200]!r}, which is not a job configuration in "
            f"JSON: {error}"
        ) from None
    return config


def _job_config(given: dict) -> dict:
    config = given["job_config"]
    if isinstance(config, dict):
        from ray.job_config import JobConfig

        config = JobConfig.from_json(config)
    submitted = {}
    if os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR"):
        submitted = _submitted_config(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])
    metadata = {str(k): str(v) for k, v in (submitted.get("metadata") or {}).items()}
    worker_module.global_worker.default_actor_lifetime = None
    namespace = given["namespace"]
    if config is not None:
        metadata.update(config.metadata)
        namespace = namespace or config.ray_namespace
        worker_module.global_worker.default_actor_lifetime = config.default_actor_lifetime
    env_of_workers = {"RAY_DRIVER_RUNTIME": worker_module.RUNTIME}
    if given["logging_config"] is not None:
        from ray._private.logging_config import to_environment

        env_of_workers.update(to_environment(given["logging_config"]))
    log = given["log_to_driver"]
    if log is None:
        log = os.environ.get("RAY_LOG_TO_DRIVER", "1").lower() not in ("0", "false")
    given["log_to_driver"] = log
    given["job_env"] = env = _job_env(given, config, submitted.get("runtime_env") or {})
    return {
        "ray_namespace": namespace or _random_namespace(),
        "python_executable": sys.executable,
        "runtime_env": env.json if env else "",
        "sys_path": _driver_sys_path(bool(env and env.fields.get("working_dir"))),
        "env": env_of_workers,
        "cwd": os.getcwd(),
        "entrypoint": " ".join(sys.argv) or "python",
        "metadata": metadata,
        "log_to_driver": bool(log),
        "submission_id": os.environ.get("RAY_JOB_SUBMISSION_ID")
        or metadata.get("job_submission_id")
        or "",
        "code_search_path": list(config.code_search_path) if config is not None else [],
    }


def _address_info(context: dict, metrics_export_port) -> dict:
    ip, head = context["node_ip"], context["head_address"]
    return {
        "node_ip_address": ip,
        "raylet_ip_address": ip,
        "redis_address": head,
        "object_store_address": context["object_store_socket"],
        "raylet_socket_name": context["node_manager_socket"],
        "webui_url": context["dashboard_address"],
        "session_dir": context["session_dir"],
        "metrics_export_port": metrics_export_port,
        "gcs_address": head,
        "address": head,
        "dashboard_agent_listen_port": 0,
        "node_id": context["node_id"].hex(),
    }


def _connect(node: dict, job: dict, given: dict):
    worker = worker_module.global_worker
    settings = {
        key: _setting(value) for key, value in (given["kwargs"].get("_system_config") or {}).items()
    }
    worker.start(
        {
            "is_driver": True,
            "node_manager_socket": node["node_manager_socket"],
            "job_config": job,
            "settings": settings,
            "log": job["log_to_driver"],
        }
    )
    worker.code_search_path = job["code_search_path"]
    worker.node = node if node.get("started") else None
    worker.runtime_env = job["runtime_env"]
    worker.address_info = _address_info(worker.context, node["metrics_export_port"])
    if job["log_to_driver"]:
        from ray._private.log_print import LogPrinter

        worker.log_printer = LogPrinter(
            worker.context["node_ip"],
            worker.context["session_dir"],
            prefixed=given["logging_config"] is None,
        )
