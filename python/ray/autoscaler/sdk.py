"""Requests to an autoscaler, under Ray's names."""

from __future__ import annotations

from typing import NoReturn

from ray._private.absent import AbsentAttribute

__all__ = ["request_resources"]

# They start and change clusters of machines.
_ABSENT = """
bootstrap_config configure_logging create_or_update_cluster fillout_defaults
get_docker_host_mount_location get_head_node_ip get_worker_node_ips register_callback_handler rsync
run_on_cluster teardown_cluster
""".split()


def request_resources(
    num_cpus: int | None = None,
    bundles: list[dict] | None = None,
    bundle_label_selectors: list[dict] | None = None,
) -> None:
    """Hints that tasks will want `num_cpus`, or room for each of `bundles`.

    It has no effect, as in Ray on a cluster without an autoscaler: nodes join by `rayctl start`.
    """


def __getattr__(name: str) -> NoReturn:
    if name in _ABSENT:
        raise AbsentAttribute(f"ray.autoscaler.sdk.{name}: not in this release")
    raise AttributeError(f"module 'ray.autoscaler.sdk' has no attribute {name!r}")
