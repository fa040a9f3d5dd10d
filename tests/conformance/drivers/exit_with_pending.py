# A driver that ends does not wait for its running tasks.
import time
import ray

ray.init(num_cpus=1, include_dashboard=False)
refs = [ray.remote(lambda: time.sleep(100)).remote() for _ in range(3)]
print("end")
