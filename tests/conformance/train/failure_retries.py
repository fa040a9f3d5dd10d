# max_failures: a failed group starts again from the latest checkpoint, in new processes.
import os

from conform import show
from ray import train
from ray.train import FailureConfig
from training import checkpoint, content, fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    saved = train.get_checkpoint()
    first = int(content(saved)["f"]) + 1 if saved else 0
    note(rank, f"starts at {first}")
    note("pids", os.getpid())
    for step in range(first, 3):
        train.report({"step": step}, checkpoint=checkpoint(f=step), checkpoint_dir_name=f"s{step}")
        if rank == 1 and step < 2:
            train.get_all_reported_checkpoints()
            raise ValueError(f"at {step}")
    return "done"


start()
result = fit(loop, run={"failure_config": FailureConfig(max_failures=2)})
from training import ROOT

print(len(set((ROOT / "notes" / "pids").read_text().split())), "processes")
(ROOT / "notes" / "pids").unlink()
notes()
show("value", lambda: result.return_value)
show("error", lambda: result.error)
show("metrics", lambda: result.metrics)
show("best", lambda: [metrics for saved, metrics in result.best_checkpoints])
