# UserCallback.after_exception: after each failed attempt, with the failures by rank.
from ray import train
from ray.train import FailureConfig, UserCallback
from training import ROOT, fit, note, notes, show_failure, start


class Watch(UserCallback):
    def after_exception(self, run_context, worker_exceptions):
        note("exceptions", sorted((rank, repr(error)) for rank, error in worker_exceptions.items()))
        note("name", run_context.run_config.name)


def loop():
    if train.get_context().get_world_rank() == 1:
        raise ValueError("no")
    train.collective.barrier()


import ray.train.collective

start()
run = {"callbacks": [Watch()], "failure_config": FailureConfig(max_failures=1)}
show_failure("fit", lambda: fit(loop, run=run))
notes()
