# init raises in a task, unless ignore_reinit_error is given.
import ray
from conform import show


@ray.remote
def f(kwargs):
    try:
        ray.init(**kwargs)
        return "accepted"
    except Exception as error:
        return type(error).__name__


ray.init(num_cpus=1, include_dashboard=False)
show("plain", lambda: ray.get(f.remote({})))
show("ignored", lambda: ray.get(f.remote({"ignore_reinit_error": True})))
show("auto", lambda: ray.get(f.remote({"address": "auto"})))
