# Methods with retry_exceptions are repeated max_task_retries times.
import os
import sys
import ray
from conform import show


@ray.remote
class A:
    def __init__(self):
        self.n = 0

    @ray.method(max_task_retries=2, retry_exceptions=[KeyError])
    def listed(self, good):
        self.n += 1
        if self.n < good:
            raise KeyError(self.n)
        return self.n

    @ray.method(max_task_retries=2)
    def unlisted(self):
        self.n += 1
        raise KeyError(self.n)

    def plain(self):
        self.n += 1
        raise KeyError(self.n)


ray.init(num_cpus=1, log_to_driver=False, include_dashboard=False)
sys.stdout = open(os.devnull, "w")  # Ray prints its retries to stdout.
show("works at third", lambda: ray.get(A.remote().listed.remote(3)))
show("exhausted", lambda: ray.get(A.remote().listed.remote(9)))
show("not asked", lambda: ray.get(A.remote().unlisted.remote()))
show(
    "per call",
    lambda: ray.get(A.remote().plain.options(max_task_retries=1, retry_exceptions=True).remote()),
)
