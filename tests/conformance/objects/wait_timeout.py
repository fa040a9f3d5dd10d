# wait with a timeout returns the ready refs, failed ones included; zero polls.
import time
import ray

ray.init(num_cpus=2, include_dashboard=False)


@ray.remote(max_retries=0)
def fail():
    raise ValueError


@ray.remote
def slow():
    time.sleep(20)


late, bad, good = slow.remote(), fail.remote(), ray.put(1)
ready, rest = ray.wait([late, bad, good], num_returns=2, timeout=120)
print([r == bad or r == good for r in ready], rest == [late])
ready, rest = ray.wait([late], timeout=0)
print(ready, len(rest))
ready, rest = ray.wait([late, good], num_returns=2, timeout=0.1)
print(ready == [good], rest == [late])
