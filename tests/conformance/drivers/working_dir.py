# Files of the working_dir are beside tasks, and its modules can be imported.
import os
import tempfile
import ray
from conform import show

folder = tempfile.mkdtemp()
with open(os.path.join(folder, "data.txt"), "w") as file:
    file.write("content")
with open(os.path.join(folder, "beside.py"), "w") as file:
    file.write("value = 42\n")


def read():
    import beside

    return open("data.txt").read(), beside.value


show(
    "init",
    lambda: (
        ray.init(num_cpus=1, include_dashboard=False, runtime_env={"working_dir": folder}) and "ok"
    ),
)
show("task", lambda: ray.get(ray.remote(read).remote(), timeout=120))
