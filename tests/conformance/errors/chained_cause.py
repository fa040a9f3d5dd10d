# __cause__ and __context__ of the user's error after a task.
import ray
from conform import show


@ray.remote(max_retries=0)
def f():
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise ValueError("outer") from error


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(f.remote())
except ValueError as error:
    show("text", lambda: ("ZeroDivisionError" in str(error), "direct cause" in str(error)))
    show("__cause__", lambda: type(error.__cause__).__name__)
    show("cause.__cause__", lambda: type(error.cause.__cause__).__name__)
