# User code may raise Ray's own exceptions.
import ray
from conform import show


@ray.remote(max_retries=0)
def f(kind):
    if kind == "timeout":
        raise ray.exceptions.GetTimeoutError("by hand")
    if kind == "system":
        raise ray.exceptions.RaySystemError("by hand")
    if kind == "ray":
        raise ray.exceptions.RayError("by hand")
    if kind == "died":
        raise ray.exceptions.ActorDiedError()


ray.init(num_cpus=1, include_dashboard=False)
for kind in ("timeout", "system", "ray", "died"):
    show(kind, lambda: ray.get(f.remote(kind), timeout=120))
