# An exception of one rank: the error of the run, its failures and its text.
from ray import train
from training import show_failure, start, trainer


class Own(Exception):
    def __init__(self, number):
        super().__init__(number)
        self.number = number

    def __str__(self):
        return f"number {self.number}"


def loop():
    if train.get_context().get_world_rank() == 1:
        inner()
    train.collective.barrier()


def inner():
    raise Own(7)


import ray.train.collective

start()
run = trainer(loop)
show_failure("fit", run.fit, "number 7", "in inner", "raise Own(7)", "Rank 1", "Traceback")
try:
    run.fit()
except train.TrainingFailedError as error:
    failure = error.worker_failures[1]
    print(type(failure) is Own, failure.number, sorted(error.worker_failures))
