"""The worker of a run: an actor whose process executes the training function in a thread."""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import Any

import ray
from ray import _raylet, cloudpickle
from ray.train import logs
from ray.train.errors import WorkerHealthCheckFailedError, pack, user_traceback
from ray.train.reporter import holds_tensors
from ray.train.session import Session, WorkerSetup, set_session

FINISHED, FAILED = "finished", "failed"


class RayTrainWorker:
    """One rank. Calls of the default group come one at a time; run() waits in a group of its own.

    The function has a thread of its own, a daemon: what asks the process (ping, execute, profiles)
    is answered while it computes, and the process can end without it.
    """

    def __init__(self):
        self._session: Session | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._outcome: dict | None = None

    def describe(self) -> dict:
        """Returns the facts about this process that ranks and records need."""
        context = ray.get_runtime_context()
        worker = _raylet.context()
        return {
            "node_id": context.get_node_id(),
            "node_ip": worker["node_ip"],
            "hostname": socket.gethostname(),
            "pid": os.getpid(),
            "actor_id": context.get_actor_id(),
            "worker_id": context.get_worker_id(),
            "gpu_ids": tuple(context.get_accelerator_ids()["GPU"]),
            "log_file_path": logs.path_of("app", "worker", context.get_worker_id()),
        }

    def prepare(self, setup: WorkerSetup) -> None:
        """Makes the process a rank: environment, working directory, logs, session."""
        os.environ.update(setup.environment)
        if setup.working_directory:
            directory = os.path.join(_raylet.context()["session_dir"], setup.working_directory)
            os.makedirs(directory, exist_ok=True)
            os.chdir(directory)
        self._session = Session(setup)
        self._session.fail = self._fail
        info = setup.info
        logs.configure(
            "worker",
            setup.log_level,
            {
                "run_name": setup.experiment_name,
                "world_rank": info.rank,
                "local_rank": info.local_rank,
                "node_rank": info.node_rank,
            },
            setup.patch_print,
        )
        set_session(self._session)
        if setup.profile is not None:
            self._session.recorder.arm(setup.profile)

    def execute(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Calls the function in this process, beside the training function."""
        return function(*args, **kwargs)

    def run(self, function: bytes, config: bytes, context: Any) -> dict:
        """Executes the training function; returns how it ended.

        function, config: pickled; unpickled in the training thread, so that what fails there is the
        user's failure. config: b"" when the function takes no argument. context: makes the context
        manager around it.
        """
        threading.Thread(
            target=self._train,
            args=(function, config, context),
            name="ray-train-function",
            daemon=True,
        ).start()
        self._ended.wait()
        return self._outcome

    def ping(self) -> None:
        """Returns at once, which shows that the process answers."""

    def profile(self, method: str, *arguments: Any) -> Any:
        """Calls a method of this rank's Recorder: look, arm, cancel or result."""
        return getattr(self._session.recorder, method)(*arguments)

    def _train(self, function: bytes, config: bytes, context: Any) -> None:
        try:
            arguments = (cloudpickle.loads(config),) if config else ()
            call = cloudpickle.loads(function)
            with context():
                self._session.begin()
                value = call(*arguments)
                self._session.end(True)
            self._session.settle()
            self._session.returned()
            self._end({"status": FINISHED, "value": self._pack_value(value)})
        except BaseException as error:
            try:
                self._session.settle_after_failure()
            finally:
                self._fail(error)
                self._session.end(False)

    def _pack_value(self, value: Any) -> bytes | None:
        """Returns rank 0's return value, pickled. The values of other ranks reach nobody."""
        if self._session.world_rank != 0 or value is None:
            return None
        if holds_tensors(value):
            raise ValueError(
                "The training function returned a torch.Tensor or torch.nn.Module. Return Python "
                "numbers or NumPy arrays, and save models in a checkpoint."
            )
        try:
            return cloudpickle.dumps(value)
        except Exception as error:
            raise WorkerHealthCheckFailedError(
                f"The training function returned a {type(value).__name__} that does not pickle. "
                "Return plain values.",
                error,
            ) from error

    def _fail(self, error: BaseException) -> None:
        """Ends run() with this error, also while the function goes on.

        The methods of its class are the user's: run() ends whatever they do.
        """
        try:
            self._end(self._failure(error))
        except BaseException as why:
            text = (
                f"The training function raised a {type(error).__name__} that cannot be looked at: "
                f"{type(why).__name__} in one of its methods."
            )
            failure = pack(WorkerHealthCheckFailedError(text))
            self._end({"status": FAILED, "error": failure, "traceback": "", "summary": text[:200]})
        sys.stdout.flush()

    def _failure(self, error: BaseException) -> dict:
        """Return the dictionary that run() answers with for this error."""
        try:
            trace = user_traceback(error)
        except Exception:
            trace = f"{type(error).__name__} (its traceback could not be made)"
        packed = pack(error)
        if packed[0] is None:
            packed = pack(
                WorkerHealthCheckFailedError(
                    f"The training function raised an exception that does not pickle: {packed[1]}\n"
                    f"{trace}"
                )
            )
            trace = ""
        lines = packed[1].splitlines() or [type(error).__name__]
        return {"status": FAILED, "error": packed, "traceback": trace, "summary": lines[0][:200]}

    def _end(self, outcome: dict) -> None:
        with self._lock:
            if self._outcome is None:
                self._outcome = outcome
                self._ended.set()
