# RAY_DISABLE_WORKER_LOG_PREFIX=1 prints without the prefix.
# env: RAY_DISABLE_WORKER_LOG_PREFIX=1
import time
import ray

ray.init(num_cpus=1, include_dashboard=False)
ray.get(ray.remote(lambda: print("plain")).remote())
time.sleep(1.5)
