# retry_exceptions takes True or a list of classes; max_retries limits the attempts.
import os
import tempfile
import sys
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote
def f(name, good):
    path = os.path.join(folder, name)
    with open(path, "a") as file:
        file.write("x")
    count = os.path.getsize(path)
    if count < good:
        raise KeyError(f"attempt {count}")
    return count


ray.init(num_cpus=1, log_to_driver=False, include_dashboard=False)
sys.stdout = open(os.devnull, "w")  # Ray prints its retries to stdout.
show("default", lambda: ray.get(f.remote("a", 2)))
show("true", lambda: ray.get(f.options(retry_exceptions=True).remote("b", 3)))
show("listed", lambda: ray.get(f.options(retry_exceptions=[KeyError]).remote("c", 3)))
show("base class listed", lambda: ray.get(f.options(retry_exceptions=[LookupError]).remote("d", 3)))
show("not listed", lambda: ray.get(f.options(retry_exceptions=[ValueError]).remote("e", 3)))
show("exhausted", lambda: ray.get(f.options(retry_exceptions=True, max_retries=1).remote("f", 9)))
show("none left", lambda: ray.get(f.options(retry_exceptions=True, max_retries=0).remote("g", 9)))
show("default budget", lambda: ray.get(f.options(retry_exceptions=True).remote("h", 9)))
print(
    {name: os.path.getsize(os.path.join(folder, name)) for name in sorted(os.listdir(folder))},
    file=sys.__stdout__,
)
