"""The calls of a training function: ranks, checkpoints, reports and datasets."""

from __future__ import annotations

from typing import Any, Callable

from ray.train import data
from ray.train.checkpoint import Checkpoint
from ray.train.preemption import PreemptionInfo
from ray.train.public import public
from ray.train.reported import CheckpointConsistencyMode, CheckpointUploadMode, ReportedCheckpoint
from ray.train.reporter import Report, check_metrics
from ray.train.session import get_session


def _removed(name: str):
    def method(self):
        raise DeprecationWarning(
            f"TrainContext.{name}() belonged to trials of hyperparameter search; a training run "
            "has none. Use get_experiment_name(), get_storage() or the training function's config."
        )

    method.__name__ = name
    method.__doc__ = "Removed; raises DeprecationWarning."
    return method


@public
class TrainContext:
    """Where in its run a training function is. All methods return at once."""

    def _get(self):
        return get_session("ray.train.get_context()")

    def get_world_size(self) -> int:
        """The number of workers of the group."""
        return self._get().world_size

    def get_world_rank(self) -> int:
        """This worker's number, from 0 to get_world_size() - 1."""
        return self._get().world_rank

    def get_local_rank(self) -> int:
        """This worker's number among those of its machine."""
        return self._get().local_rank

    def get_local_world_size(self) -> int:
        """The number of workers on this machine."""
        return self._get().local_world_size

    def get_node_rank(self) -> int:
        """The number of this machine among those of the group."""
        return self._get().node_rank

    def get_experiment_name(self) -> str:
        """The name of the run: RunConfig.name."""
        return self._get().experiment_name

    def get_storage(self) -> Any:
        """Where the run keeps its checkpoints; attributes storage_filesystem, storage_fs_path,
        experiment_dir_name and experiment_fs_path. None in local mode."""
        return self._get().storage

    get_metadata = _removed("get_metadata")
    get_trial_name = _removed("get_trial_name")
    get_trial_id = _removed("get_trial_id")
    get_trial_resources = _removed("get_trial_resources")
    get_trial_dir = _removed("get_trial_dir")


_context = TrainContext()


@public
def get_context() -> TrainContext:
    """The context of the running training function. Raises RuntimeError outside of one."""
    get_session("ray.train.get_context()")
    return _context


@public
def get_checkpoint() -> Any:
    """The checkpoint to go on from, or None.

    When the function starts: the latest one that the run has registered, the same on all ranks.
    Later: the last one that this rank has reported.
    """
    return get_session("ray.train.get_checkpoint()").checkpoint


@public
def report(
    metrics: dict[str, Any],
    checkpoint: Any = None,
    checkpoint_dir_name: str | None = None,
    checkpoint_upload_mode: CheckpointUploadMode = CheckpointUploadMode.SYNC,
    delete_local_checkpoint_after_upload: bool | None = None,
    checkpoint_upload_fn: Callable[[Any, str], Any] | None = None,
    validation: Any = False,
) -> None:
    """Reports metrics, and a checkpoint, of this rank; all ranks must call it, and wait here.

    metrics: values that pickle, without tensors; those of rank 0 are the run's.
    checkpoint: a Checkpoint; the files of all ranks become one directory in the run's folder.
    checkpoint_dir_name: the name of that directory; rank 0's counts.
    checkpoint_upload_mode: SYNC uploads before this returns, ASYNC afterwards in the background,
        NO_UPLOAD not at all: the checkpoint then lies in the run's folder already.
    delete_local_checkpoint_after_upload: None deletes the local directory for ASYNC only.
    checkpoint_upload_fn: uploads instead: (checkpoint, name) -> Checkpoint in the run's folder.
    validation: not in this release.

    Raises ValueError for tensors in the metrics, for a name that leads out of the run's folder and
    for a checkpoint outside of it where it must lie inside, RuntimeError when ranks make different
    calls or the storage is not shared by all nodes, NotImplementedError for validation.
    """
    session = get_session("ray.train.report()")
    check_metrics(metrics)
    if validation:
        raise NotImplementedError(
            "report(validation=...): validation of checkpoints is not in this release."
        )
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        raise ValueError(
            "report(): checkpoint must be a ray.train.Checkpoint, for example "
            f"Checkpoint.from_directory(path), not {checkpoint!r}."
        )
    if not isinstance(checkpoint_upload_mode, CheckpointUploadMode):
        raise ValueError(
            "report(): checkpoint_upload_mode must be a CheckpointUploadMode, not "
            f"{checkpoint_upload_mode!r}."
        )
    if checkpoint_dir_name is not None and session.storage is not None:
        checkpoint_dir_name = session.storage.checked_name(checkpoint_dir_name)
    session.report(
        Report(
            metrics=metrics,
            checkpoint=checkpoint,
            name=checkpoint_dir_name,
            mode=checkpoint_upload_mode,
            delete=delete_local_checkpoint_after_upload,
            upload_fn=checkpoint_upload_fn,
            validation=validation,
        )
    )


@public
def get_all_reported_checkpoints(
    consistency_mode: CheckpointConsistencyMode = CheckpointConsistencyMode.VALIDATED,
    timeout_s: float | None = None,
) -> list[ReportedCheckpoint]:
    """The run's checkpoints, those of all reports of this rank included; the best comes last.

    It waits for the other ranks' parts of these reports, at most `timeout_s` seconds (None: for
    ever), and then returns what there is.
    """
    session = get_session("ray.train.get_all_reported_checkpoints()")
    return session.reported_checkpoints(consistency_mode, timeout_s)


@public
def get_preemption_info() -> PreemptionInfo | None:
    """Returns which nodes of the group are being drained; None if there are none.

    All ranks must call it, and wait here, so that all get the same answer.
    """
    draining = get_session("ray.train.get_preemption_info()").preemption()
    if draining is None:
        return None
    deadline_ms, node_to_ranks = draining
    return PreemptionInfo(deadline_ms, node_to_ranks)


@public
def get_dataset_shard(dataset_name: str = "train") -> Any:
    """This worker's part of the trainer's dataset of that name: a DataIterator.

    Raises KeyError for a name that the trainer's `datasets` do not have.
    """
    shards = get_session("ray.train.get_dataset_shard()").shards or {}
    if dataset_name not in shards:
        raise data.unknown_dataset(dataset_name, list(shards))
    return shards[dataset_name]
