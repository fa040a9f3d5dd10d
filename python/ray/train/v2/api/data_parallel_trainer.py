"""DataParallelTrainer: the same function on every worker of a run."""

from __future__ import annotations

import inspect
import logging
import uuid
from typing import Any, Callable

import ray
from ray import cloudpickle
from ray.train import checks, interrupts, local_mode, processes
from ray.train.backend import BackendConfig
from ray.train.callbacks import load_callbacks
from ray.train.config import DataConfig, RunConfig, ScalingConfig
from ray.train.controller_actor import TrainController
from ray.train.errors import ControllerError, PreemptionError, unpack, worker_group_error
from ray.train.preemption import PreemptionInfo
from ray.train.result import Result
from ray.train.spec import RunSpec, settings_of
from ray.train.storage import StorageContext
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

logger = logging.getLogger("ray.train")

# fit() waits so many seconds for the controller's process to end.
_LEAVE_S = 5.0
_BY_NAME_AND_PATH = (
    "a run goes on when a trainer with the same RunConfig(name=..., storage_path=...) is started; "
    "get_checkpoint() then gives its latest checkpoint."
)


class DataParallelTrainer:
    """Runs a function on several workers that know of each other.

    train_loop_per_worker: the function, with one parameter (train_loop_config or {}) or none.
    backend_config: what connects the workers, for example a TorchConfig.
    scaling_config, run_config: how many workers, and where and how they run.
    datasets: name -> dataset, of which get_dataset_shard(name) gives each worker its part;
        dataset_config says how.

    Raises ValueError for a configuration of another class, DeprecationWarning for metadata and
    resume_from_checkpoint, NotImplementedError for validation_config.
    """

    def __init__(  # Ray's signature
        self,
        train_loop_per_worker: Callable[..., Any],
        *,
        train_loop_config: dict[str, Any] | None = None,
        backend_config: BackendConfig | None = None,
        scaling_config: ScalingConfig | None = None,
        run_config: RunConfig | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        validation_config: Any = None,
        metadata: dict[str, Any] | None = None,
        resume_from_checkpoint: Any = None,
    ):
        owner = type(self).__name__
        if metadata is not None:
            raise DeprecationWarning(
                f"{owner}(metadata=...) was removed. Save it in a checkpoint, or pass it in "
                "train_loop_config."
            )
        if resume_from_checkpoint is not None:
            raise DeprecationWarning(
                f"{owner}(resume_from_checkpoint=...) was removed: {_BY_NAME_AND_PATH} Pass other "
                "checkpoints in train_loop_config."
            )
        if validation_config is not None:
            raise NotImplementedError(
                "ValidationConfig: validations of checkpoints are not in this release."
            )
        self.train_loop_per_worker = train_loop_per_worker
        self.train_loop_config = train_loop_config
        self.backend_config = self._checked("backend_config", backend_config, BackendConfig)
        self.scaling_config = self._checked("scaling_config", scaling_config, ScalingConfig)
        self.run_config = self._checked("run_config", run_config, RunConfig)
        self.datasets = datasets or {}
        self.data_config = self._checked("dataset_config", dataset_config, DataConfig)

    def _checked(self, name: str, value: Any, wanted: type) -> Any:
        if value is None:
            return wanted()
        checks.check_instance(type(self).__name__, name, value, wanted)
        return value

    @classmethod
    def restore(cls, *args: Any, **kwargs: Any):
        """Removed; raises DeprecationWarning."""
        raise DeprecationWarning(f"{cls.__name__}.restore() was removed: {_BY_NAME_AND_PATH}")

    @classmethod
    def can_restore(cls, *args: Any, **kwargs: Any):
        """Removed; raises DeprecationWarning."""
        raise DeprecationWarning(f"{cls.__name__}.can_restore() was removed: {_BY_NAME_AND_PATH}")

    def fit(self) -> Result:
        """Runs the function on all workers and waits for its end; starts a cluster if need be.

        Raises TrainingFailedError (WorkerGroupError, ControllerError, PreemptionError) when the run
        failed, ValueError for a function with several parameters, ActorDiedError when the
        controller died. Ctrl-C in the main thread aborts the run and ends the program (SystemExit).
        """
        takes_config = self._takes_config()
        if self.scaling_config.max_workers == 0:
            if self.run_config.profile is not None:
                logger.warning(
                    "RunConfig(profile=...) has no effect with num_workers=0: there is no worker "
                    "to be profiled. Use torch.profiler in the function."
                )
            config = (self.train_loop_config or {},) if takes_config else ()
            return local_mode.fit(
                self.run_config.name,
                lambda: self.train_loop_per_worker(*config),
                self.backend_config,
                self.datasets,
                self.data_config,
            )
        if not ray.is_initialized():
            ray.init()
        return _run(self._spec(takes_config))

    def _takes_config(self) -> bool:
        required = 0
        for parameter in inspect.signature(self.train_loop_per_worker).parameters.values():
            is_positional = parameter.kind in (
                parameter.POSITIONAL_ONLY,
                parameter.POSITIONAL_OR_KEYWORD,
            )
            if parameter.kind is parameter.VAR_POSITIONAL or (
                is_positional and parameter.default is parameter.empty
            ):
                required += 1
        if required > 1:
            raise ValueError(
                "train_loop_per_worker must have one parameter, which gets train_loop_config, or "
                f"none, but it has {required} that need a value. Put what it needs into "
                "train_loop_config, or bind the others with functools.partial."
            )
        return required == 1

    def _spec(self, takes_config: bool) -> Any:
        run_config = self.run_config
        storage = StorageContext(
            run_config.storage_path, run_config.name, run_config.storage_filesystem
        )
        config = _pickled("train_loop_config", self.train_loop_config or {})
        spec = RunSpec(
            run_id=uuid.uuid4().hex,
            function=_pickled("train_loop_per_worker", self.train_loop_per_worker),
            config=config if takes_config else b"",
            config_blob=config if self.train_loop_config is not None else b"",
            scaling_config=self.scaling_config,
            run_config=run_config,
            backend_config=self.backend_config,
            storage=storage,
            callbacks=[*run_config.callbacks, *load_callbacks()],
            settings=settings_of(),
            node_id=ray.get_runtime_context().get_node_id(),
            datasets=self.datasets,
            data_config=self.data_config,
        )
        storage.make_marker()
        return spec


def _pickled(name: str, value: Any) -> bytes:
    try:
        return cloudpickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"{name} cannot be sent to the workers: {type(error).__name__}: {error}. Open files, "
            "locks and connections do not pickle: make them inside the function."
        ) from error


def _pickled_spec(spec: Any) -> bytes:
    try:
        return cloudpickle.dumps(spec)
    except Exception:
        # Pickling each dataset alone makes the error name the argument that cannot be sent.
        _pickled("datasets", spec.datasets)
        _pickled("RunConfig(callbacks=...)", spec.callbacks)
        raise


def _run(spec: Any) -> Result:
    """Runs the controller to its end, and leaves nothing of the run behind."""
    controller = (
        ray.remote(TrainController)
        .options(
            num_cpus=0,
            enable_task_events=False,
            # Every rank may have a report and a wait for registered checkpoints under way.
            max_concurrency=max(1000, 4 * spec.scaling_config.max_workers),
            scheduling_strategy=NodeAffinitySchedulingStrategy(spec.node_id, soft=False),
        )
        .remote(_pickled_spec(spec))
    )
    answer, pid = controller.run.remote(), controller.pid.remote()
    handles_interrupts = interrupts.begin(controller)
    try:
        ended = ray.get(answer)
    finally:
        if handles_interrupts:
            interrupts.end()
        if ray.is_initialized():
            _leave(controller, pid)
    return result_of(ended)


def _leave(controller: Any, pid: Any) -> None:
    """Ends the controller, and waits for the end of its process, which is on this node."""
    try:
        process = processes.ended(ray.get(pid, timeout=_LEAVE_S))
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        # The controller is dead already, or has never come up.
        process = None
    try:
        ray.kill(controller)
    except (ValueError, ray.exceptions.OutOfDiskError):
        # The head has refused to make the actor, for the reason that fit() raises.
        pass
    processes.wait(process, _LEAVE_S)


def result_of(ended: dict) -> Result:
    """Returns the Result in the controller's answer, or raises the TrainingFailedError in it."""
    outcome, result = ended["outcome"], ended["result"]
    if outcome.status == "FINISHED":
        if outcome.value is not None:
            result.return_value = cloudpickle.loads(outcome.value)
        return result
    if outcome.status == "ABORTED":
        raise ControllerError(RuntimeError("The run was aborted."))
    if outcome.drained is not None:
        raise PreemptionError(
            PreemptionInfo(outcome.deadline_ms, outcome.drained), outcome.drain_timed_out
        )
    if outcome.error is not None:
        raise ControllerError(outcome.error)
    failures = {
        rank: one.error if isinstance(one.error, BaseException) else unpack(one.error)
        for rank, one in outcome.failures.items()
    }
    traces = {rank: one.traceback for rank, one in outcome.failures.items() if one.traceback}
    raise worker_group_error(failures, traces)
