# A running task that is cancelled sees KeyboardInterrupt; it is not retried.
import os
import tempfile
import time
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote(max_retries=3, retry_exceptions=True)
def f():
    try:
        open(os.path.join(folder, "started"), "w").close()
        for _ in range(1000):
            time.sleep(0.02)
    except BaseException as error:
        open(os.path.join(folder, type(error).__name__), "w").close()
        raise


ray.init(num_cpus=1, include_dashboard=False)
ref = f.remote()
while not os.listdir(folder):
    time.sleep(0.01)
ray.cancel(ref)
show("get", lambda: ray.get(ref, timeout=120))
print(sorted(os.listdir(folder)))
