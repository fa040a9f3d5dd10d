"""Metrics of user programs: Counter, Gauge, Histogram.

A process keeps its metrics and sends them to its node-manager, at most once a second and when it
ends. They are exported as `ray_<name>`, counters as `ray_<name>_total`.
"""

from __future__ import annotations

import functools
import logging
import re
from typing import Any, Callable

from ray import _raylet

logger = logging.getLogger(__name__)

_COUNTER, _GAUGE, _HISTOGRAM = 0, 1, 2
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")

__all__ = ["Counter", "Gauge", "Histogram"]


class Metric:
    """Base class of Counter, Gauge and Histogram.

    tag_keys: the names of the tags that every value must have. A name that Prometheus does not
    accept causes a warning, and the metric is discarded. Raises ValueError (empty name, missing
    tag) and TypeError.
    """

    _kind: int

    def __init__(
        self, name: str, description: str = "", tag_keys: tuple[str, ...] | None = None
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"Metric name must be a string, got {type(name)}.")
        if not name:
            raise ValueError("Empty name is not allowed. Please provide a metric name.")
        if not isinstance(description, str):
            raise TypeError(f"Metric description must be a string, got {type(description)}.")
        if tag_keys is not None and not isinstance(tag_keys, tuple):
            raise TypeError(f"tag_keys should be a tuple type, got: {type(tag_keys)}")
        for key in tag_keys or ():
            if not isinstance(key, str):
                raise TypeError(f"Tag keys must be str, got {type(key)}.")
        self._name = name
        self._description = description
        self._tag_keys = tag_keys or ()
        self._default_tags: dict[str, str] = {}
        self._discard_metric = not _NAME.match(name)
        self._metric: int | None = None
        if self._discard_metric:
            logger.warning(
                "Metric name %r is not valid, the metric is discarded: names are made of "
                "letters, digits, '_' and ':', and do not begin with a digit.",
                name,
            )

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        # Default tags are not pickled, as in Ray.
        return type(self), (self._name, self._description, self._tag_keys)

    def set_default_tags(self, default_tags: dict[str, str]) -> Metric:
        """Sets tags for values recorded without them; returns the metric.

        Raises ValueError for a tag that is not among the tag_keys.
        """
        for key, value in default_tags.items():
            if key not in self._tag_keys:
                raise ValueError(f"Unrecognized tag key {key}.")
            if not isinstance(value, str):
                raise TypeError(f"Tag values must be str, got {type(value)}.")
        self._default_tags = default_tags
        return self

    @property
    def info(self) -> dict[str, Any]:
        """A dict with name, description, tag_keys, default_tags and a histogram's boundaries."""
        return {
            "name": self._name,
            "description": self._description,
            "tag_keys": self._tag_keys,
            "default_tags": self._default_tags,
        }

    def _boundaries(self) -> tuple[float, ...]:
        return ()

    def _recorder(self) -> Callable[[float], None]:
        """A function that records values with the default tags, without checks: for hot paths."""
        if self._metric is None:
            self._define()
        values = tuple(self._default_tags[key] for key in self._tag_keys)
        return functools.partial(_raylet.metric_record, self._metric, values)

    def _define(self) -> None:
        self._metric = _raylet.metric_define(
            self._kind, self._name, self._description, self._tag_keys, self._boundaries()
        )

    def _record(self, value: float, tags: dict[str, str] | None) -> None:
        final = {**self._default_tags, **(tags or {})} if tags or self._default_tags else {}
        for tag in (tags or {}).values():
            if not isinstance(tag, str):
                raise TypeError(f"Tag values must be str, got {type(tag)}.")
        missing = [key for key in self._tag_keys if key not in final]
        if missing:
            raise ValueError(f"Missing value for tag key(s): {','.join(missing)}.")
        if self._discard_metric:
            return
        if self._metric is None:
            self._define()
        _raylet.metric_record(self._metric, tuple(final[key] for key in self._tag_keys), value)


def check_number(value: Any) -> None:
    if not isinstance(value, (int, float)):
        raise TypeError(f"value must be int or float, got {type(value)}.")


class Counter(Metric):
    """A sum that only grows, exported as `ray_<name>_total`.

    The sums of processes that ended are kept.
    """

    _kind = _COUNTER

    def inc(self, value: float = 1.0, tags: dict[str, str] | None = None) -> None:
        """Adds `value`. Raises ValueError unless it is above 0, or when a tag is missing."""
        check_number(value)
        if value <= 0:
            raise ValueError(f"value must be >0, got {value}")
        self._record(value, tags)


class Gauge(Metric):
    """A value that goes up and down, exported as `ray_<name>` for each process that set it."""

    _kind = _GAUGE

    def set(self, value: float | None, tags: dict[str, str] | None = None) -> None:
        """Sets the value; None is ignored. Raises ValueError when a tag is missing."""
        if value is None:
            return
        check_number(value)
        self._record(value, tags)


class Histogram(Metric):
    """Counts of values by size, exported as `ray_<name>_bucket`, `_sum`, `_count`.

    boundaries: the upper bounds of the buckets, above 0.
    """

    _kind = _HISTOGRAM

    def __init__(
        self,
        name: str,
        description: str = "",
        boundaries: list[float] | None = None,
        tag_keys: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(name, description, tag_keys)
        if not boundaries:
            raise ValueError(
                "boundaries argument should be provided when using the Histogram class. e.g., "
                'Histogram("name", boundaries=[1.0, 2.0])'
            )
        for boundary in boundaries:
            if boundary <= 0:
                raise ValueError(
                    f"Invalid `boundaries` argument for histogram: {boundaries}. Use positive "
                    "values for the arguments."
                )
        self.boundaries = boundaries

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self._name, self._description, self.boundaries, self._tag_keys)

    def _boundaries(self) -> tuple[float, ...]:
        return tuple(sorted(float(boundary) for boundary in self.boundaries))

    def observe(self, value: float, tags: dict[str, str] | None = None) -> None:
        """Counts one value. Raises ValueError when a tag is missing."""
        check_number(value)
        self._record(value, tags)

    @property
    def info(self) -> dict[str, Any]:
        return {**super().info, "boundaries": self.boundaries}
