"""ray.init(): finds or starts a cluster and connects this process to it."""

from __future__ import annotations

import collections.abc
import os
import signal
import sys
import threading

from ray._private import sigterm
from ray._private.init_arguments import InitArguments, check_arguments
from ray._private.interrupts import deferred_interrupts
from ray._private.job_setup import Job, job_of
from ray._private.local_cluster import join, setting_text, start, stop_cluster
from ray._private.ray_logger import LOGGER_FORMAT, configure
from ray._private.session import (
    check_not_exiting,
    check_not_forked,
    global_worker,
    is_initialized,
    lock,
    shutdown,
)


class RayContext(collections.abc.Mapping):
    """The result of ray.init(): facts about the session.

    It is a context manager that leaves the session, and a mapping with the entries of
    `address_info`.
    """

    def __init__(self, address_info: dict):
        self.dashboard_url = address_info.get("webui_url")
        self.python_version = "{}.{}.{}".format(*sys.version_info[:3])
        self.ray_version = global_worker.ray_version
        self.ray_commit = global_worker.ray_commit
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
        shutdown()

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
    return _init(
        InitArguments(
            address=address,
            num_cpus=num_cpus,
            num_gpus=num_gpus,
            resources=resources,
            labels=labels,
            object_store_memory=object_store_memory,
            local_mode=local_mode,
            ignore_reinit_error=ignore_reinit_error,
            include_dashboard=include_dashboard,
            dashboard_host=dashboard_host,
            dashboard_port=dashboard_port,
            job_config=job_config,
            configure_logging=configure_logging,
            logging_level=logging_level,
            logging_format=logging_format,
            logging_config=logging_config,
            log_to_driver=log_to_driver,
            namespace=namespace,
            runtime_env=runtime_env,
            enable_resource_isolation=enable_resource_isolation,
            cgroup_path=cgroup_path,
            system_reserved_cpu=system_reserved_cpu,
            system_reserved_memory=system_reserved_memory,
            proxy_server_url=proxy_server_url,
            hidden=kwargs,
        )
    )


def _init(given: InitArguments) -> RayContext:
    check_not_forked()
    check_not_exiting()
    check_arguments(given)
    with lock:
        if is_initialized():
            if given.ignore_reinit_error:
                return RayContext(
                    global_worker.address_info or _address_info(global_worker.context, None)
                )
            raise RuntimeError(
                "Maybe you called ray.init twice by accident? This error can be suppressed by "
                "passing in 'ignore_reinit_error=True' or by calling 'ray.shutdown()' prior to "
                "'ray.init()'."
            )
        _install_sigterm_handler()
        if given.logging_config is not None:
            from ray._private import logging_config as logging_setup

            logging_setup.apply(given.logging_config)
        elif given.configure_logging:
            _configure_logging(given.logging_level, given.logging_format)
        job = job_of(given)
        node = {}
        try:
            node = join(given)
            with deferred_interrupts():
                node = node or start(given)
                _connect(node, job, given)
            if job.env:
                job.env.send()
        except BaseException:
            if job.env:
                job.env.discard()
            if is_initialized():
                shutdown()
            elif node and node.get("started"):
                stop_cluster(node, False)
            raise
        return RayContext(global_worker.address_info)


def _install_sigterm_handler():
    if threading.current_thread() is not threading.main_thread():
        import logging

        logging.getLogger("ray").warning(
            "ray.init() was called outside of the main thread: no SIGTERM handler is installed, "
            "so workers may not be stopped cleanly by it."
        )
        return
    if signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, None):
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
        configure(level, fmt or LOGGER_FORMAT)


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


def _connect(node: dict, job: Job, given: InitArguments):
    worker = global_worker
    settings = {
        key: setting_text(value)
        for key, value in (given.hidden.get("_system_config") or {}).items()
    }
    worker.start(
        {
            "is_driver": True,
            "node_manager_socket": node["node_manager_socket"],
            "job_config": job.config,
            "settings": settings,
            "log": job.prints_logs,
        }
    )
    worker.code_search_path = job.config["code_search_path"]
    if node.get("started"):
        worker.node = node
        worker.stop_node = lambda wait: stop_cluster(node, wait)
    worker.runtime_env = job.config["runtime_env"]
    worker.address_info = _address_info(worker.context, node["metrics_export_port"])
    if job.prints_logs:
        from ray._private.log_print import LogPrinter

        worker.log_printer = LogPrinter(
            worker.context["node_ip"], prefixed=given.logging_config is None
        )
