# sys.exit() of a driver keeps its code, and the cluster goes away.
import sys
import ray

ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(ray.put(1)), flush=True)
sys.exit(7)
