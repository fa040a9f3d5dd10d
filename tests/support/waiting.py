"""Waiting for what happens elsewhere: looks until it is there, and never for a fixed time."""

import os
import time

PATIENCE_S = 60


def eventually(condition, seconds=30, every=0.05):
    """The condition's first true value within the time; its last value otherwise."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(every)


def until(question, good=bool, seconds=PATIENCE_S, every=0.02):
    """The first good answer; a failure that shows the last answer when none is good in time."""
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
    """As long as it takes: who waits for a file that never comes is its driver's to interrupt."""
    until(lambda: all(os.path.exists(path) for path in paths), seconds=float("inf"), every=0.01)
