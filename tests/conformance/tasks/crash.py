# A task whose process dies is retried max_retries times, then fails with WorkerCrashedError.
import os
import tempfile
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote
def f(name, good):
    path = os.path.join(folder, name)
    with open(path, "a") as file:
        file.write("x")
    if os.path.getsize(path) < good:
        os._exit(1)
    return os.path.getsize(path)


ray.init(num_cpus=1, include_dashboard=False)
show("retried", lambda: ray.get(f.options(max_retries=1).remote("a", 2)))
show("no retries", lambda: ray.get(f.options(max_retries=0).remote("b", 2)))
show("exhausted", lambda: ray.get(f.options(max_retries=1).remote("c", 9)))
print({name: os.path.getsize(os.path.join(folder, name)) for name in sorted(os.listdir(folder))})
