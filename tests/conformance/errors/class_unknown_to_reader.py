# The reader of an error cannot import its exception class.
import os
import sys
import tempfile
import ray
from conform import show

folder = tempfile.mkdtemp()
with open(os.path.join(folder, "hidden_module.py"), "w") as file:
    file.write("class Hidden(Exception):\n    pass\n")


@ray.remote(max_retries=0)
def f(path):
    sys.path.insert(0, path)
    import hidden_module

    raise hidden_module.Hidden("where am I")


ray.init(num_cpus=1, include_dashboard=False)
show("get", lambda: ray.get(f.remote(folder)), "where am I", "Hidden")
