# log_to_driver=False keeps the output of workers away from the driver.
import time
import ray

ray.init(num_cpus=1, log_to_driver=False, include_dashboard=False)
ray.get(ray.remote(lambda: print("not seen")).remote())
time.sleep(1)
print("end")
