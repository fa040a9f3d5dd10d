# A failed ref that nobody gets is reported on stderr, once, when it is dropped.
# compare: stderr
import logging
import time
import ray


@ray.remote(max_retries=0)
def bad():
    raise ValueError("nobody looked")


ray.init(num_cpus=1, include_dashboard=False, logging_level="error")
ref = bad.remote()
ray.wait([ref])
del ref
time.sleep(1)
