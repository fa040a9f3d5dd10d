"""Requests to an autoscaler, under Ray's names."""

from __future__ import annotations

from typing import NoReturn

from ray._private.absent import absent_attribute
from ray._private.session import global_worker

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
    """Hints that tasks will want `num_cpus` CPUs, or room for each of `bundles`.

    It only checks its arguments, because no autoscaler would add nodes: they join by
    `rayctl start`. Raises TypeError for wrong types, ValueError when there is not one selector for
    each bundle, and RuntimeError when this process is not connected.
    """
    if num_cpus is not None and not isinstance(num_cpus, int):
        raise TypeError(f"num_cpus: expected an int, got {type(num_cpus).__name__}")
    for name, requests, number in (
        ("bundles", bundles, (int, float)),
        ("bundle_label_selectors", bundle_label_selectors, str),
    ):
        if requests is not None and not (
            isinstance(requests, list)
            and all(isinstance(each, dict) for each in requests)
            and all(isinstance(value, number) for each in requests for value in each.values())
        ):
            raise TypeError(
                f"{name}: expected a list of dicts whose values are "
                f"{'strings' if number is str else 'numbers'}, got {requests!r}"
            )
    if bundle_label_selectors is not None and len(bundle_label_selectors) != len(bundles or ()):
        raise ValueError(
            f"bundle_label_selectors: expected one for each of the {len(bundles or ())} bundles, "
            f"got {len(bundle_label_selectors)}"
        )
    if not global_worker.connected:
        raise RuntimeError("Ray is not initialized yet: call ray.init() first.")


def __getattr__(name: str) -> NoReturn:
    if name in _ABSENT:
        raise absent_attribute(f"ray.autoscaler.sdk.{name}")
    raise AttributeError(f"module 'ray.autoscaler.sdk' has no attribute {name!r}")
