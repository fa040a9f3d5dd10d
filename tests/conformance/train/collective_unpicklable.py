# A value of broadcast_from_rank_zero that cannot be pickled is a TypeError.
import threading

import ray.train.collective
from ray import train
from ray.train import collective
from training import fit, note, notes, start


def loop():
    try:
        collective.broadcast_from_rank_zero(threading.Lock())
    except Exception as error:
        note("value", isinstance(error, TypeError))


start()
fit(loop, 1)
notes()
