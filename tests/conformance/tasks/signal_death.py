# A signal that kills a task's process fails the task with WorkerCrashedError.
import os
import signal
import ray
from conform import show


@ray.remote(max_retries=0)
def f(number):
    os.kill(os.getpid(), number)


ray.init(num_cpus=1, include_dashboard=False)
show("SIGKILL", lambda: ray.get(f.remote(signal.SIGKILL)))
show("SIGSEGV", lambda: ray.get(f.remote(signal.SIGSEGV)))
