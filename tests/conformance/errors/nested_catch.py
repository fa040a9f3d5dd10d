# An error that an outer task re-raises or replaces has the original as its cause.
import ray
from conform import show


@ray.remote(max_retries=0)
def inner():
    raise KeyError("inner")


@ray.remote(max_retries=0)
def reraise():
    try:
        ray.get(inner.remote())
    except KeyError:
        raise


@ray.remote(max_retries=0)
def replace():
    try:
        ray.get(inner.remote())
    except KeyError as error:
        raise ValueError("replaced") from error


@ray.remote(max_retries=0)
def swallow():
    try:
        ray.get(inner.remote())
    except KeyError as error:
        return type(error).__name__


ray.init(num_cpus=2, include_dashboard=False)
show("reraise", lambda: ray.get(reraise.remote()))
show("replace", lambda: ray.get(replace.remote()), "KeyError", "direct cause")
show("swallow", lambda: ray.get(swallow.remote()))
