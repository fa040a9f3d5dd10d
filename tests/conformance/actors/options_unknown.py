# Unknown options are refused in an actor's decorator and in .options().
import ray
from conform import show


class A:
    pass


B = ray.remote(A)
for name in (
    "max_retries",
    "num_returns",
    "retry_exceptions",
    "max_calls",
    "colour",
    "max_restart",
):
    show("decorator " + name, lambda: ray.remote(**{name: 1})(A) and "accepted")
    show("options " + name, lambda: B.options(**{name: 1}) and "accepted")
