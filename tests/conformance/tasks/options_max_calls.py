# max_calls can be given in the decorator only.
import ray
from conform import show

f = ray.remote(max_calls=2)(lambda: 1)
show("options", lambda: f.options(max_calls=3), "max_calls")
show("options num_cpus", lambda: f.options(num_cpus=0) and "accepted")
