"""The daemons of the cluster that ray.init() has started in this process."""

import contextlib
import os
import signal
import threading

import ray


def pid_of(daemon):
    """Returns the process id of a daemon, such as "ray-head"."""
    processes = ray._private.worker.global_worker.node["processes"]
    return next(pid for name, pid, _ in processes if name == daemon)


@contextlib.contextmanager
def stopped_for(seconds, daemon):
    """Stops a daemon, as if its machine were too busy to run it, until that time or the block is
    over. Yields an event that is set before the daemon goes on."""
    pid = pid_of(daemon)
    goes_on = threading.Event()

    def resume():
        goes_on.set()
        os.kill(pid, signal.SIGCONT)

    timer = threading.Timer(seconds, resume)
    os.kill(pid, signal.SIGSTOP)
    timer.start()
    try:
        yield goes_on
    finally:
        timer.cancel()
        resume()
