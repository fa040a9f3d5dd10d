"""Waiting for what happens elsewhere: looks again and again, up to a minute."""

import os
import time

PATIENCE_S = 60


def until(question, good=bool):
    """The first good answer."""
    deadline = time.monotonic() + PATIENCE_S
    while not good(answer := question()):
        assert time.monotonic() < deadline, f"still {answer!r}"
        time.sleep(0.02)
    return answer


# Tasks and their drivers tell each other by files.


def touch(path):
    open(path, "w").close()


def wait_for(*paths):
    """As long as it takes: a task that waits for a file that never comes is its driver's to interrupt."""
    while not all(os.path.exists(path) for path in paths):
        time.sleep(0.01)
