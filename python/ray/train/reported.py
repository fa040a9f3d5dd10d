"""Reports and the checkpoints that came with them, as values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ray.train.public import public

if TYPE_CHECKING:
    from ray.train.checkpoint import Checkpoint


@public
class CheckpointUploadMode(enum.Enum):
    """How report() brings a checkpoint into the run's folder."""

    # The upload goes on in a thread of the worker after report() has returned.
    ASYNC = "ASYNC"
    # The upload ends before report() returns.
    SYNC = "SYNC"
    # There is no upload: the checkpoint is in the folder already.
    NO_UPLOAD = "NO_UPLOAD"


@public
class CheckpointConsistencyMode(enum.Enum):
    """The state of the reported checkpoints for which get_all_reported_checkpoints() waits."""

    # The controller has registered the checkpoints.
    COMMITTED = "COMMITTED"
    # Their validations have ended, too.
    VALIDATED = "VALIDATED"


@public
class ReportedCheckpointStatus(enum.Enum):
    """How far a reported checkpoint has come."""

    COMMITTED = "COMMITTED"
    PENDING_VALIDATION = "PENDING_VALIDATION"
    VALIDATED = "VALIDATED"
    VALIDATION_TIMEOUT = "VALIDATION_TIMEOUT"
    VALIDATION_FAILED = "VALIDATION_FAILED"


@public
@dataclass
class ReportedCheckpoint:
    """A checkpoint in the run's folder, with the metrics of the report that brought it."""

    checkpoint: Checkpoint
    metrics: dict[str, Any]
    status: ReportedCheckpointStatus = ReportedCheckpointStatus.COMMITTED


@dataclass
class TrainingReport:
    """The report of one rank, on its way to the controller.

    checkpoint_dir_name: where its checkpoint lies, relative to the run's folder; None without one.
    validation: as report() got it.
    times: what its rank has waited for so far (times.py); None without one.
    """

    metrics: dict[str, Any]
    checkpoint_dir_name: str | None = None
    validation: Any = False
    times: dict[str, float] | None = None
