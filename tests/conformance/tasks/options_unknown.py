# An unknown option is refused when the function is decorated, and by .options().
import ray
from conform import show

f = ray.remote(lambda: 1)
for name in (
    "colour",
    "max_restarts",
    "max_concurrency",
    "lifetime",
    "namespace",
    "get_if_exists",
    "max_task_retries",
    "num_cpu",
):
    show("decorator " + name, lambda: ray.remote(**{name: 1})(lambda: 1) and "accepted")
    show("options " + name, lambda: f.options(**{name: 1}) and "accepted")
