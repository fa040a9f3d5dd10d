"""The metrics of a run that its controller exports."""

from __future__ import annotations

from ray.util.metrics import Gauge

_STATE_TAG = "ray_train_controller_state"
_TAGS = ("ray_train_run_name", "ray_train_run_id")


class RunMetrics:
    """Gauges of one run. Without `enabled` nothing is exported."""

    def __init__(self, run_name: str, run_id: str, enabled: bool):
        self._state = ""
        self._sums = {"start": 0.0, "shutdown": 0.0}
        self._gauges = None
        if not enabled:
            return
        tags = {"ray_train_run_name": run_name, "ray_train_run_id": run_id}
        self._gauges = {
            "state": Gauge(
                "train_controller_state",
                "1 for the state that the run is in, 0 for those that it was in.",
                (*_TAGS, _STATE_TAG),
            ),
            "start": Gauge(
                "train_worker_group_start_total_time_s",
                "Seconds that the starts of this run's groups of workers have taken.",
                _TAGS,
            ),
            "shutdown": Gauge(
                "train_worker_group_shutdown_total_time_s",
                "Seconds that the ends of this run's groups of workers have taken.",
                _TAGS,
            ),
        }
        for gauge in self._gauges.values():
            gauge.set_default_tags(tags)

    def state(self, state: str) -> None:
        """Sets the gauges: the run is in this state now."""
        if self._gauges is None or state == self._state:
            return
        gauge = self._gauges["state"]
        if self._state:
            gauge.set(0, {_STATE_TAG: self._state})
        gauge.set(1, {_STATE_TAG: state})
        self._state = state

    def took(self, phase: str, seconds: float) -> None:
        """Adds the seconds that a "start" or "shutdown" of a group of workers has taken."""
        self._sums[phase] += seconds
        if self._gauges is not None:
            self._gauges[phase].set(self._sums[phase])
