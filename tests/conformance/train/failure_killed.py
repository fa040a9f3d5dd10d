# A rank whose process dies: the failure is a WorkerHealthCheckFailedError around the actor's death.
import os
import signal
import threading

from ray import train
from training import fit, start


def loop():
    train.report({"a": 1})
    train.get_all_reported_checkpoints()
    if train.get_context().get_world_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # It is stopped.


start()
try:
    fit(loop)
except train.WorkerGroupError as error:
    for rank, failure in error.worker_failures.items():
        print(rank, type(failure).__name__, type(failure.health_check_failure).__name__)
    print("Rank 1" in str(error))
