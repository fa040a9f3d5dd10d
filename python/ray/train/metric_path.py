"""Metrics by name, also inside nested dicts: "eval/loss" is metrics["eval"]["loss"]."""

from __future__ import annotations

from typing import Any

MISSING = object()


def look_up(metrics: dict[str, Any] | None, path: str) -> Any:
    """Returns the metric, or MISSING.

    A key that contains the slash itself comes before one inside another dict.
    """
    if not isinstance(metrics, dict):
        return MISSING
    if path in metrics:
        return metrics[path]
    # "a/b/c" may be {"a": {"b/c": 1}} as well as {"a/b": {"c": 1}}.
    parts = path.split("/")
    for cut in range(1, len(parts)):
        inner = metrics.get("/".join(parts[:cut]), MISSING)
        found = look_up(inner, "/".join(parts[cut:])) if inner is not MISSING else MISSING
        if found is not MISSING:
            return found
    return MISSING


def names(metrics: dict[str, Any] | None, prefix: str = "") -> list[str]:
    """Returns the paths of all metrics, for messages."""
    found = []
    for key, value in (metrics or {}).items():
        if isinstance(value, dict):
            found += names(value, f"{prefix}{key}/")
        else:
            found.append(f"{prefix}{key}")
    return found
