"""RunSpec: a run as its trainer describes it to the controller."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from ray.train.config import DataConfig, RunConfig, ScalingConfig

# A driver sends these variables on to its controller and workers if they are set there.
FORWARDED = (
    "RAY_TRAIN_V2_ENABLED",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S",
    "RAY_TRAIN_WORKER_HEALTH_CHECK_TIMEOUT_S",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S",
    "RAY_TRAIN_COLLECTIVE_TIMEOUT_S",
    "RAY_TRAIN_COLLECTIVE_WARN_INTERVAL_S",
    "RAY_TRAIN_CHECKPOINT_UPLOAD_WARN_INTERVAL_S",
    "RAY_TRAIN_ENABLE_PRINT_PATCH",
    "RAY_TRAIN_ENABLE_CONTROLLER_STRUCTURED_LOGGING",
    "RAY_TRAIN_ENABLE_WORKER_STRUCTURED_LOGGING",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER",
    "RAY_TRAIN_PREEMPTION_POLL_INTERVAL_S",
)


@dataclass(frozen=True)
class Settings:
    """Settings of a run from the driver's environment. Times in seconds."""

    start_timeout_s: float = 60.0
    health_timeout_s: float = 600.0
    failure_gather_s: float = 0.2
    collective_timeout_s: float | None = None
    collective_warn_interval_s: float = 60.0
    upload_warn_interval_s: float = 60.0
    patch_print: bool = True
    change_directory: bool = True
    share_gpus: bool = True
    watch_drains: bool = True
    metrics: bool = True
    forwarded: dict[str, str] = field(default_factory=dict)


def settings_of(environment: Any = None) -> Settings:
    """Reads the driver's environment. Raises ValueError for a variable that is no number."""
    environment = os.environ if environment is None else environment

    def seconds(name: str, default: float | None) -> float | None:
        text = environment.get(name, "")
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if value < 0:
            raise ValueError(f"{name}={text!r}: it must be a number of seconds, 0 or more.")
        return value

    def flag(name: str) -> bool:
        return environment.get(name, "1").lower() not in ("0", "false")

    # A collective that may take 0 s would never succeed. Ray takes 0 and less for no limit.
    timeout = seconds("RAY_TRAIN_COLLECTIVE_TIMEOUT_S", None)
    # The ranks of a collective that breaks fail one after another, and not all in one instant. A
    # look of Ray's controller tells together what has failed since the one before.
    gather = max(0.2, seconds("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", 0.2))
    return Settings(
        start_timeout_s=seconds("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", 60.0),
        health_timeout_s=seconds("RAY_TRAIN_WORKER_HEALTH_CHECK_TIMEOUT_S", 600.0),
        failure_gather_s=gather,
        collective_timeout_s=timeout or None,
        collective_warn_interval_s=seconds("RAY_TRAIN_COLLECTIVE_WARN_INTERVAL_S", 60.0) or 60.0,
        upload_warn_interval_s=seconds("RAY_TRAIN_CHECKPOINT_UPLOAD_WARN_INTERVAL_S", 60.0) or 60.0,
        patch_print=flag("RAY_TRAIN_ENABLE_PRINT_PATCH"),
        change_directory=flag("RAY_CHDIR_TO_TRIAL_DIR"),
        share_gpus=flag("TRAIN_ENABLE_SHARE_CUDA_VISIBLE_DEVICES"),
        watch_drains=flag("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER"),
        metrics=flag("RAY_TRAIN_METRICS_ENABLED"),
        forwarded={name: environment[name] for name in FORWARDED if name in environment},
    )


@dataclass
class RunSpec:
    """One run. It is pickled by value: configurations and callbacks may be of the user's classes.

    function, config: the pickled training function and its argument; config is b"" when the
    function takes none. config_blob: the same argument for callbacks, also when there is none.
    """

    run_id: str
    function: bytes
    config: bytes
    config_blob: bytes
    scaling_config: ScalingConfig
    run_config: RunConfig
    backend_config: Any
    storage: Any
    callbacks: list[Any]
    settings: Settings
    node_id: str
    datasets: dict[str, Any] = field(default_factory=dict)
    data_config: DataConfig | None = None

    @property
    def name(self) -> str:
        return self.run_config.name


@dataclass
class RunContext:
    """The facts about the run that callbacks get."""

    run_config: RunConfig
    scaling_config: ScalingConfig
    train_loop_config: Any = None
