# errno and filename of an OSError that comes from a task.
import ray
from conform import show


@ray.remote(max_retries=0)
def f():
    open("/none/such")


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(f.remote())
except OSError as error:
    show("cause errno", lambda: error.cause.errno)
    show("cause filename", lambda: error.cause.filename)
    show("errno", lambda: error.errno)
    show("is FileNotFoundError", lambda: isinstance(error, FileNotFoundError))
