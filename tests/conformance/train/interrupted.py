# Ctrl-C while fit() waits ends the driver by SystemExit; the same name goes on afterwards.
import os
import signal
import threading

import ray
from conform import show
from ray import train
from training import ROOT, checkpoint, content, fit, listing, start
from waiting import until

RUNS = ROOT / "runs"


def loop():
    saved = content(train.get_checkpoint())
    if saved:
        return saved
    train.report({"a": 1}, checkpoint=checkpoint(f="x"), checkpoint_dir_name="one")
    train.get_all_reported_checkpoints()
    RUNS.touch()
    threading.Event().wait()


def interrupt():
    until(RUNS.exists)
    os.kill(os.getpid(), signal.SIGINT)


start()
threading.Thread(target=interrupt).start()
try:
    fit(loop, 1)
except BaseException as error:
    print(type(error).__name__, getattr(error, "code", None))
finally:
    print("finally")
show("folder", lambda: listing("run"))
until(lambda: ray.available_resources().get("CPU") == 4)
show("groups", lambda: {row["state"] for row in ray.util.placement_group_table().values()})
show("again", lambda: fit(loop, 1).return_value)
