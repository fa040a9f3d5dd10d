# wait keeps the input's order and never gives more than num_returns.
import ray

ray.init(num_cpus=1, include_dashboard=False)
refs = [ray.put(i) for i in range(5)]
ready, rest = ray.wait(refs, num_returns=3)
print([refs.index(r) for r in ready], [refs.index(r) for r in rest])
ready, rest = ray.wait(refs[::-1], num_returns=5)
print([refs.index(r) for r in ready], rest)
ready, rest = ray.wait(refs)
print(len(ready), len(rest), type(ready).__name__, type(rest).__name__)
