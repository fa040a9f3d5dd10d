"""Waits for events elsewhere: looks until they have happened, and never waits for a fixed time."""

import os
import subprocess
import sys
import time

# It bounds how long a test that fails takes. One that passes does not wait for it, however busy the
# machine is.
PATIENCE_S = 120


def eventually(condition, seconds=PATIENCE_S, every=0.05):
    """Returns the condition's first true value within the time, or its last value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(every)


def is_silence(error):
    """Returns whether the error says that the cluster did not answer. A busy one may fail to greet
    a caller in time, which says nothing about what the caller asks."""
    # Nothing is imported here: an error of this module was raised by somebody who has imported it.
    state = sys.modules.get("ray.util.state.exception")
    if state and isinstance(error, state.RayStateApiException):
        return isinstance(error, state.ServerUnavailable) or "did not answer" in str(error)
    if isinstance(error, subprocess.CalledProcessError):
        return "rayctl" in str(error.cmd)
    # memory_summary() raises this very class; its subclasses are errors of sockets.
    return type(error) is ConnectionError


def until(question, good=bool, seconds=PATIENCE_S, every=0.02):
    """Returns the first good answer; fails with the last answer when none is good in time. It asks
    again, too, when the cluster did not answer."""
    answers = []

    def is_good():
        try:
            answers[:] = [question()]
        except Exception as error:
            if not is_silence(error):
                raise
            # The text holds no reference to what the question's frames refer to.
            answers[:] = [f"no answer: {error!r} {getattr(error, 'stderr', '')}"]
            return False
        return good(answers[0])

    assert eventually(is_good, seconds, every), f"still {answers[0]!r} after {seconds} s"
    return answers[0]


def answer_of(question):
    """Returns the first answer, good or not; asks again only when the cluster did not answer."""
    return until(question, lambda answer: True)


# Tasks and their drivers tell each other by files.


def touch(path):
    open(path, "w").close()


def wait_for(*paths):
    """Waits as long as it takes. If the file never comes, the driver of the waiting task interrupts
    it."""
    until(lambda: all(os.path.exists(path) for path in paths), seconds=float("inf"), every=0.01)
