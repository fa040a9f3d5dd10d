"""The arguments of ray.init(): which values are refused, and with which error."""

from __future__ import annotations

from ray._private.absent import not_in_release
from ray._private.amounts import check_number, check_resources

# absent.py says why this is not typing.TYPE_CHECKING.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


class InitArguments:
    """The arguments of ray.init(), as they were given; `hidden` has those with an underscore.

    A plain class, because importing `dataclasses` takes longer than all that ray.init() imports.
    """

    address: Any
    num_cpus: Any
    num_gpus: Any
    resources: Any
    labels: Any
    object_store_memory: Any
    local_mode: bool
    ignore_reinit_error: bool
    include_dashboard: bool | None
    dashboard_host: Any
    dashboard_port: Any
    job_config: Any
    configure_logging: bool
    logging_level: Any
    logging_format: str | None
    logging_config: Any
    log_to_driver: bool | None
    namespace: Any
    runtime_env: Any
    enable_resource_isolation: bool
    cgroup_path: str | None
    system_reserved_cpu: float | None
    system_reserved_memory: int | None
    proxy_server_url: str | None
    hidden: dict

    def __init__(self, **given):
        self.__dict__.update(given)


def check_arguments(given: InitArguments):
    """Raises what ray.init() documents for wrong, unknown and absent arguments."""
    hidden = given.hidden
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
    if given.local_mode:
        raise RuntimeError(
            "`local_mode` is no longer supported. For interactive debugging consider using the "
            "Ray distributed debugger."
        )
    for name in ("num_cpus", "num_gpus"):
        value = getattr(given, name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
            check_number(name, value)
            if value != int(value):
                raise ValueError(f"{name}: a node's amount must be a whole number, got {value}")
    if given.resources is not None:
        if not isinstance(given.resources, dict):
            raise TypeError(f"resources: expected a dict, got {type(given.resources).__name__}")
        check_resources(given.resources)
    if given.labels is not None:
        _check_labels(given.labels)
    memory = given.object_store_memory
    if memory is not None and (
        isinstance(memory, bool) or not isinstance(memory, (int, float)) or not 0 < memory < 2**63
    ):
        raise ValueError(
            f"object_store_memory: expected a positive number of bytes, got {memory!r}"
        )
    check_number("memory", hidden.get("_memory"))
    if given.logging_config is not None:
        from ray._private.logging_config import LoggingConfig

        if not isinstance(given.logging_config, LoggingConfig):
            raise AttributeError(
                "logging_config: expected a ray.LoggingConfig, got "
                f"{type(given.logging_config).__name__}"
            )
    _check_port("dashboard_port", given.dashboard_port)
    if not isinstance(given.dashboard_host, str):
        raise TypeError(
            f"dashboard_host: expected an address, got {type(given.dashboard_host).__name__}"
        )
    _check_port("_metrics_export_port", hidden.get("_metrics_export_port"))
    if given.namespace is not None:
        if not isinstance(given.namespace, str):
            raise TypeError("namespace must be None or a string.")
        if not given.namespace:
            raise ValueError('"" is not a valid namespace. Pass None to not specify a namespace.')
    if "_system_config" in hidden and not isinstance(hidden["_system_config"], (dict, type(None))):
        raise TypeError("The _system_config must be a dict.")
    _check_absent(given)


def _check_port(name: str, port):
    if port is not None and (
        isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535
    ):
        raise ValueError(f"{name}: expected a port from 0 (any free one) to 65535, got {port!r}")


def _check_absent(given: InitArguments):
    """Refuses requests for what this release lacks.

    _redis_password and _redis_username ask for nothing: as in Ray, they have no effect where no
    Redis keeps the head's state. Modin passes a password for each cluster that it starts.
    """
    if (
        given.enable_resource_isolation
        or given.cgroup_path
        or given.system_reserved_cpu
        or given.system_reserved_memory
    ):
        raise not_in_release("resource isolation by cgroups (enable_resource_isolation)")
    if given.proxy_server_url:
        raise not_in_release("proxy_server_url")
    for key, feature in (
        ("_enable_object_reconstruction", "object reconstruction"),
        ("object_spilling_directory", "object spilling"),
        ("_tracing_startup_hook", "tracing"),
    ):
        if given.hidden.get(key):
            raise not_in_release(f"{feature} ({key})")
    env = given.runtime_env
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
