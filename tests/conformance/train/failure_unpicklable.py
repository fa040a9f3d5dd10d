# Values that cannot be pickled: what a rank returns, reports or raises.
import threading

from ray import train
from training import fit, show_failure, start


class Odd(Exception):
    def __init__(self):
        super().__init__("odd")
        self.lock = threading.Lock()


def loop(what):
    if what == "metrics":
        train.report({"lock": threading.Lock()})
    if what == "exception":
        raise Odd
    if what == "value":
        return threading.Lock()


start()
for what in ("value", "metrics", "exception"):
    try:
        print(what, fit(loop, 1, name=what, config=what))
    except train.TrainingFailedError as error:
        failures = getattr(error, "worker_failures", {})
        print(what, type(error).__name__, {rank: type(e).__name__ for rank, e in failures.items()})
    except Exception as error:
        print(what, type(error).__name__)
