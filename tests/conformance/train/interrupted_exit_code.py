# The exit code of a driver that Ctrl-C ends in fit(), and that its exit handlers run.
import atexit
import os
import signal
import threading

from training import ROOT, fit, start
from waiting import until

RUNS = ROOT / "runs"


def loop():
    RUNS.touch()
    threading.Event().wait()


def interrupt():
    until(RUNS.exists)
    os.kill(os.getpid(), signal.SIGINT)


atexit.register(lambda: print("exit handler", flush=True))
start()
threading.Thread(target=interrupt, daemon=True).start()
fit(loop, 2)
print("not reached")
