# get of a list raises the first error by position; the other values stay.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)


@ray.remote(max_retries=0)
def fail(kind):
    raise kind("x")


refs = [ray.put(1), fail.remote(ValueError), fail.remote(KeyError)]
ray.wait(refs, num_returns=3)
show("list", lambda: ray.get(refs))
show("reversed", lambda: ray.get(refs[::-1]))
show("again", lambda: ray.get(refs[1]))
