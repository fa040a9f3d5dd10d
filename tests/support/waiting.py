"""Waits for events elsewhere: looks until they have happened, and never waits for a fixed time."""

import os
import time

PATIENCE_S = 60


def eventually(condition, seconds=30, every=0.05):
    """Returns the condition's first true value within the time, or its last value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(every)


def until(question, good=bool, seconds=PATIENCE_S, every=0.02):
    """Returns the first good answer; fails with the last answer when none is good in time."""
    answers = []

    def is_good():
        answers[:] = [question()]
        return good(answers[0])

    assert eventually(is_good, seconds, every), f"still {answers[0]!r} after {seconds} s"
    return answers[0]


# Tasks and their drivers tell each other by files.


def touch(path):
    open(path, "w").close()


def wait_for(*paths):
    """Waits as long as it takes. If the file never comes, the driver of the waiting task interrupts
    it."""
    until(lambda: all(os.path.exists(path) for path in paths), seconds=float("inf"), every=0.01)
