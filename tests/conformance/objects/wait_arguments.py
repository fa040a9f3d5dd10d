# ray.wait refuses bad arguments.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
a, b = ray.put(1), ray.put(2)
show("ref", lambda: ray.wait(a))
show("tuple", lambda: ray.wait((a, b)))
show("set", lambda: ray.wait({a}))
show("int inside", lambda: ray.wait([1]))
show("duplicates", lambda: ray.wait([a, a]))
show("zero returns", lambda: ray.wait([a], num_returns=0))
show("negative returns", lambda: ray.wait([a], num_returns=-1))
show("too many returns", lambda: ray.wait([a], num_returns=2))
show("negative timeout", lambda: ray.wait([a], timeout=-1))
show("empty", lambda: ray.wait([]))
show("empty many", lambda: ray.wait([], num_returns=5))
show("float returns", lambda: ray.wait([a], num_returns=1.5))
show("positional", lambda: ray.wait([a], 1))
show("string timeout", lambda: ray.wait([a], timeout="1"))
