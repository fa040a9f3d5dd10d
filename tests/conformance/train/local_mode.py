# num_workers=0 runs the function in the driver's process and thread.
import os
import threading

import ray
from conform import show
from ray import train
from ray.train import collective
from training import STORAGE, checkpoint, content, fit

PID = os.getpid()


def loop(config):
    context = train.get_context()
    show("process", lambda: os.getpid() == PID)
    show("main thread", lambda: threading.current_thread() is threading.main_thread())
    show("config", lambda: config)
    show("size", context.get_world_size)
    show("rank", context.get_world_rank)
    show("local", lambda: (context.get_local_rank(), context.get_local_world_size()))
    show("node", context.get_node_rank)
    show("barrier", collective.barrier)
    show("broadcast", lambda: collective.broadcast_from_rank_zero([1]))
    show("checkpoint", train.get_checkpoint)
    show("report", lambda: train.report({"a": 1}))
    show("report", lambda: train.report({"a": 2}, checkpoint=checkpoint(f="x")))
    show("checkpoint", lambda: content(train.get_checkpoint()))
    return "value"


result = fit(loop, 0, config={"a": 1})
for name in "metrics error path return_value metrics_dataframe".split():
    show(name, lambda: getattr(result, name))
show("checkpoint", lambda: content(result.checkpoint))
show("folder", STORAGE.exists)
