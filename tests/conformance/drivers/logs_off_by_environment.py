# RAY_LOG_TO_DRIVER=0 keeps the output of workers away from the driver.
# env: RAY_LOG_TO_DRIVER=0
import time
import ray

ray.init(num_cpus=1, include_dashboard=False)
ray.get(ray.remote(lambda: print("not seen")).remote())
time.sleep(1)
print("end")
