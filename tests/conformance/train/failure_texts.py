# The text of a WorkerGroupError: ranks with the same error, numbers ignored, are told together.
# env: RAY_TRAIN_HEALTH_CHECK_INTERVAL_S=5
import ray.train.collective
from ray import train
from training import fit, start


def loop():
    rank = train.get_context().get_world_rank()
    # The failures of so many seconds are told together.
    train.collective.barrier()
    if rank == 3:
        raise KeyError("other")
    raise ValueError(f"bad value in step {rank}")


start()
try:
    fit(loop, 4)
except train.WorkerGroupError as error:
    text = str(error)
    for line in text.splitlines():
        if "Rank" in line:
            print(line)
    print("errors", "ValueError: bad value" in text, "KeyError: 'other'" in text)
    print("own frames only", "site-packages" not in text and "ray/train" not in text)
    print("short", len(text) < 2000)
    print({rank: repr(failure) for rank, failure in sorted(error.worker_failures.items())})
