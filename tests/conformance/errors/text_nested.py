# The text of an error that passed through two tasks shows both.
import re
import ray


@ray.remote(max_retries=0)
def inner():
    raise ZeroDivisionError("deep")


@ray.remote(max_retries=0)
def outer():
    return ray.get(inner.remote())


ray.init(num_cpus=2, include_dashboard=False)
try:
    ray.get(outer.remote())
except ZeroDivisionError as error:
    text = re.sub(r"\x1b\[\d+m", "", str(error))
    print(re.findall(r"ray::(\w+)\(\)", text))
    print(
        [
            re.search(r"in (.*)", line).group(1)
            for line in text.splitlines()
            if line.startswith("  File")
        ]
    )
    print(text.splitlines()[-1], type(error.cause).__name__)
