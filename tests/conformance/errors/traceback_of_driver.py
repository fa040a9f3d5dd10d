# The driver's traceback shows the user's get and the text of the task.
import traceback
import ray


@ray.remote(max_retries=0)
def f():
    raise ValueError("in the task")


def driver_code():
    return ray.get(f.remote())


ray.init(num_cpus=1, include_dashboard=False)
try:
    driver_code()
except ValueError:
    text = traceback.format_exc()
    print(
        "in driver_code" in text,
        "in the task" in text,
        text.count("ray::f()"),
        text.startswith("Traceback (most recent call last):"),
    )
