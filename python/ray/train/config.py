"""Configurations of a run besides its workers, which scaling_config.py describes."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import logging
import os
import threading
from typing import Any, Protocol

from ray.train import checks
from ray.train.callbacks import UserCallback
from ray.train.profiles.config import ProfileConfig
from ray.train.public import public
from ray.train.scaling_config import ScalingConfig

__all__ = [
    "CheckpointConfig",
    "DataConfig",
    "FailureConfig",
    "LoggingConfig",
    "RunConfig",
    "ScalingConfig",
    "SyncConfig",
    "TRAIN_DATASET_KEY",
    "ValidationConfig",
    "ValidationFn",
    "ValidationTaskConfig",
]

# Customary name of the dataset that is trained on.
TRAIN_DATASET_KEY = "train"
_DEFAULT_STORAGE = "~/ray_results"
_LOG_LEVELS = ("CRITICAL", "FATAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "TRACE", "NOTSET")


@public
@dataclasses.dataclass
class FailureConfig:
    """Says which failures a run outlives. A limit of -1 means that there is no limit.

    max_failures: retries after errors of workers.
    controller_failure_limit: retries when a group of workers cannot be started.
    max_preemption_failures: retries after nodes were drained, which max_failures does not count.
    relax_collectives_on_preemption: whether report() and get_preemption_info() complete without the
    ranks on drained nodes, from the moment of the drain on; not if rank 0 is among these.
    preemption_grace_s: how many seconds after the deadline of a drained node the run restarts.
    Ranks on other nodes run on until then, also when those of that node (but rank 0) have gone.

    Raises ValueError for a wrong value.
    """

    max_failures: int = 0
    controller_failure_limit: int = -1
    max_preemption_failures: int = -1
    relax_collectives_on_preemption: bool = False
    preemption_grace_s: float = 0.0
    fail_fast: dataclasses.InitVar[Any] = checks.NOT_GIVEN

    def __post_init__(self, fail_fast):
        owner = "FailureConfig"
        checks.refuse_removed(owner, "it concerned several trials only.", fail_fast=fail_fast)
        for name in ("max_failures", "controller_failure_limit", "max_preemption_failures"):
            checks.check_whole_number(owner, name, getattr(self, name), -1, "-1 is without limit")
        checks.check_bool(
            owner, "relax_collectives_on_preemption", self.relax_collectives_on_preemption
        )
        checks.check_seconds(owner, "preemption_grace_s", self.preemption_grace_s)


@public
@dataclasses.dataclass
class CheckpointConfig:
    """Says which checkpoints of a run are kept.

    num_to_keep: how many, at least 1; None for all. The latest one is kept besides.
    checkpoint_score_attribute: the metric by which they are ranked, "a/b" for one inside another
    dict; None ranks by time.
    checkpoint_score_order: "max" if a larger value is better, or "min".

    Raises ValueError for a wrong value.
    """

    num_to_keep: int | None = None
    checkpoint_score_attribute: str | None = None
    checkpoint_score_order: str = "max"
    checkpoint_frequency: dataclasses.InitVar[Any] = checks.NOT_GIVEN
    checkpoint_at_end: dataclasses.InitVar[Any] = checks.NOT_GIVEN

    def __post_init__(self, checkpoint_frequency, checkpoint_at_end):
        owner = "CheckpointConfig"
        checks.refuse_removed(
            owner,
            "the training function reports a checkpoint when there is one.",
            checkpoint_frequency=checkpoint_frequency,
            checkpoint_at_end=checkpoint_at_end,
        )
        if self.num_to_keep is not None:
            checks.check_whole_number(
                owner, "num_to_keep", self.num_to_keep, 1, "or None to keep all"
            )
        attribute = self.checkpoint_score_attribute
        if attribute is not None and not isinstance(attribute, str):
            raise ValueError(
                f"{owner}(checkpoint_score_attribute={attribute!r}): it must be a metric's name."
            )
        if self.checkpoint_score_order not in ("max", "min"):
            raise ValueError(
                f"{owner}(checkpoint_score_order={self.checkpoint_score_order!r}): it must be "
                '"max" or "min".'
            )


@public
@dataclasses.dataclass
class LoggingConfig:
    """How much Train itself logs.

    log_level: a name of a standard level, in any case. Raises ValueError for another.
    """

    log_level: str = "INFO"

    def __post_init__(self):
        level = self.log_level.upper() if isinstance(self.log_level, str) else None
        if level not in _LOG_LEVELS:
            raise ValueError(
                f"LoggingConfig(log_level={self.log_level!r}): it must be one of "
                f"{', '.join(sorted(_LOG_LEVELS))}."
            )
        self.log_level = level

    @property
    def level(self) -> int:
        """The number that the module logging has for this level."""
        # The module logging has no level TRACE. Number 5 lets through everything that DEBUG does,
        # and more.
        return 5 if self.log_level == "TRACE" else getattr(logging, self.log_level)


@public
@dataclasses.dataclass
class SyncConfig:
    """Takes the arguments that Ray's takes; nothing in Train reads them."""

    sync_period: int = 300
    sync_timeout: int = 1800
    sync_artifacts: bool = False
    sync_artifacts_on_checkpoint: bool = True


_given_names: set[str] = set()
_naming = threading.Lock()


def _fresh_name(storage_path: str) -> str:
    """A name for a run that got none: with the time, and with a number if there is such a run.

    Runs can follow each other within a second, and one with the name of an earlier one would go on
    from the checkpoints of that.
    """
    first = name = f"ray_train_run-{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}"
    with _naming:
        for number in itertools.count(2):
            if name not in _given_names and not _exists(os.path.join(storage_path, name)):
                _given_names.add(name)
                return name
            name = f"{first}-{number}"


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False  # Storage will refuse such a path and say why.


def _lies_inside(name: str) -> bool:
    """Returns whether the folder of this name lies below the one in which it is made."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    parts = set(name.split("/"))
    leads_out = "\0" in name or name.startswith("/") or ".." in parts
    return not leads_out and not parts <= {"", "."}


@public
@dataclasses.dataclass
class RunConfig:
    """A run's name, its storage, and what happens around it.

    name: the name of the run and of its folder; by default one with today's date and time.
    storage_path: directory or URI below which the run has its folder; by default ~/ray_results.
    storage_filesystem: a pyarrow or fsspec file system; storage_path is then a path in it.
    worker_runtime_env: the runtime environment of the workers.
    profile: a ProfileConfig, or True for its defaults: records the first steps with torch.profiler.
    Not in Ray.

    Raises ValueError for a wrong value and DeprecationWarning for an option that was removed.
    """

    name: str | None = None
    storage_path: str | os.PathLike | None = None
    storage_filesystem: Any = None
    failure_config: FailureConfig | None = None
    checkpoint_config: CheckpointConfig | None = None
    callbacks: list[UserCallback] | None = None
    worker_runtime_env: Any = None
    logging_config: LoggingConfig | None = None
    sync_config: dataclasses.InitVar[Any] = checks.NOT_GIVEN
    verbose: dataclasses.InitVar[Any] = checks.NOT_GIVEN
    stop: dataclasses.InitVar[Any] = checks.NOT_GIVEN
    progress_reporter: dataclasses.InitVar[Any] = checks.NOT_GIVEN
    log_to_file: dataclasses.InitVar[Any] = checks.NOT_GIVEN
    profile: ProfileConfig | bool | None = None

    def __post_init__(self, sync_config, verbose, stop, progress_reporter, log_to_file):
        checks.refuse_removed(
            "RunConfig",
            "it belonged to hyperparameter search and did nothing for training.",
            sync_config=sync_config,
            verbose=verbose,
            stop=stop,
            progress_reporter=progress_reporter,
            log_to_file=log_to_file,
        )
        self._set_place()
        for name, wanted in (
            ("failure_config", FailureConfig),
            ("checkpoint_config", CheckpointConfig),
            ("logging_config", LoggingConfig),
        ):
            if getattr(self, name) is None:
                setattr(self, name, wanted())
            checks.check_instance("RunConfig", name, getattr(self, name), wanted)
        if self.callbacks is None:
            self.callbacks = []
        self._check_callbacks()
        if self.worker_runtime_env is None:
            self.worker_runtime_env = {}
        checks.check_instance("RunConfig", "worker_runtime_env", self.worker_runtime_env, dict)
        self._set_profile()

    def _set_profile(self):
        if self.profile is True:
            self.profile = ProfileConfig()
        elif self.profile is False:
            self.profile = None
        if self.profile is not None:
            checks.check_instance("RunConfig", "profile", self.profile, ProfileConfig)

    def _set_place(self):
        if self.storage_path is None:
            self.storage_path = os.path.expanduser(_DEFAULT_STORAGE)
        if isinstance(self.storage_path, os.PathLike):
            self.storage_path = os.fspath(self.storage_path)
        checks.check_instance("RunConfig", "storage_path", self.storage_path, str)
        if not self.name:
            self.name = _fresh_name(self.storage_path)
        checks.check_instance("RunConfig", "name", self.name, str)
        if not _lies_inside(self.name):
            raise ValueError(
                f"RunConfig(name={self.name!r}): it must name a folder below the storage path, "
                "such as 'experiment' or 'team/experiment'."
            )

    def _check_callbacks(self):
        callbacks = self.callbacks
        if not isinstance(callbacks, (list, tuple)) or not all(
            isinstance(callback, UserCallback) for callback in callbacks
        ):
            raise ValueError(
                f"RunConfig(callbacks={callbacks!r}): it must be a list of objects of classes "
                "derived from ray.train.UserCallback. Callbacks of ray.tune are not taken."
            )
        self.callbacks = list(callbacks)


@public
@dataclasses.dataclass
class DataConfig:
    """How the datasets of a trainer reach its workers.

    datasets_to_split: "all", or the names of those of which each worker gets a part of its own; of
    the others every worker gets all. Raises TypeError for another type.
    execution_options, enable_shard_locality: taken for compatibility; nothing reads them.
    """

    datasets_to_split: str | list[str] = "all"
    execution_options: Any = None
    enable_shard_locality: bool = True

    def __post_init__(self):
        given = self.datasets_to_split
        names_only = isinstance(given, list) and all(isinstance(name, str) for name in given)
        if given != "all" and not names_only:
            raise TypeError(
                f'DataConfig(datasets_to_split={given!r}): it must be "all" or a list of names.'
            )

    def splits(self, name: str) -> bool:
        """Returns whether each worker gets its own part of this dataset."""
        return self.datasets_to_split == "all" or name in self.datasets_to_split


@public
class ValidationFn(Protocol):
    """A function that validates a checkpoint: fn(checkpoint, **fn_kwargs) -> metrics."""

    def __call__(self, checkpoint, **kwargs) -> dict[str, Any]: ...


@public
@dataclasses.dataclass
class ValidationTaskConfig:
    """Arguments of one validation: fn_kwargs go to its function; timeout_s, None without limit."""

    fn_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    timeout_s: float | None = None

    def __post_init__(self):
        if self.fn_kwargs is None:
            self.fn_kwargs = {}
        if self.timeout_s is not None:
            checks.check_seconds("ValidationTaskConfig", "timeout_s", self.timeout_s)


@public
@dataclasses.dataclass
class ValidationConfig:
    """Validations of reported checkpoints in tasks of their own, which this release lacks.

    A trainer that gets one raises NotImplementedError.
    """

    fn: ValidationFn
    task_config: ValidationTaskConfig | None = None
    ray_remote_kwargs: dict[str, Any] | None = None

    def __post_init__(self):
        self.task_config = self.task_config or ValidationTaskConfig()
        self.ray_remote_kwargs = self.ray_remote_kwargs or {}
