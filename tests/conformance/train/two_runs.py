# Two runs after each other: of one trainer, and without a call of ray.init().
import os

import ray
from conform import show
from ray import train
from training import listing, trainer


def loop():
    return train.get_context().get_experiment_name()


one = trainer(loop, 1, name="one")
show("initialised", ray.is_initialized)
show("first", lambda: one.fit().return_value)
show("initialised", ray.is_initialized)
show("second", lambda: one.fit().return_value)
show("folders", listing)
