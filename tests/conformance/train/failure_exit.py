# sys.exit() in a training function is a failure of its rank, whatever the code.
import sys

from ray import train
from training import fit, show_failure, start


def loop(config):
    if train.get_context().get_world_rank() == 0:
        sys.exit(config["code"])


start()
show_failure("3", lambda: fit(loop, config={"code": 3}), "SystemExit")
show_failure("0", lambda: fit(loop, config={"code": 0}), "SystemExit")
