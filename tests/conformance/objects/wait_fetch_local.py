# On one node, fetch_local=False makes no difference.
import ray

ray.init(num_cpus=1, include_dashboard=False)
refs = [ray.put(bytes(1_000_000)), ray.remote(lambda: 1).remote()]
ready, rest = ray.wait(refs, num_returns=2, timeout=120, fetch_local=False)
print(len(ready), len(rest))
