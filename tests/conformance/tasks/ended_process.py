# A task that ends its own process takes no finished result with it.
import os
import signal
import tempfile
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote(max_retries=0)
def work(path, how=None):
    if how == "exit":
        os._exit(3)
    if how:
        os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGTERM)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, b"x")
    os.close(file)
    return 1


ray.init(num_cpus=1, include_dashboard=False)
for how in ("exit", "kill", "terminate"):
    path = os.path.join(folder, how)
    for turn in range(5):
        ray.get(work.remote(os.devnull))
        refs = [work.remote(path) for i in range(10)] + [work.remote(path, how)]
        ray.wait(refs, num_returns=11)
        for ref in refs[:-1]:
            ray.get(ref)
    show(how, lambda: ray.get(refs[-1]))
    show(how, lambda: os.path.getsize(path))
