"""Waiting for events in the programs. It runs on Ray as well, so it uses Ray's public API only."""

import time

import ray


def until(condition, limit_s=60):
    """Calls `condition` until it is true; raises TimeoutError after `limit_s` seconds."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the condition did not become true")
        time.sleep(0.02)


@ray.remote(num_cpus=0)
class Flag:
    """Raised by tasks that run, and awaited by the driver."""

    def __init__(self):
        self.raised = 0

    def raise_it(self):
        self.raised += 1

    def count(self):
        return self.raised


def await_flag(flag, count=1):
    """Waits until `flag` was raised `count` times."""
    until(lambda: ray.get(flag.count.remote()) >= count)
