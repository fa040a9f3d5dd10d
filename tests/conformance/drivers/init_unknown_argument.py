# init refuses unknown keywords and some that were removed.
import ray
from conform import show

show("unknown", lambda: ray.init(num_cpu=1))
show("private", lambda: ray.init(_colour=1))
show("local_mode", lambda: ray.init(local_mode=True))
show("storage", lambda: ray.init(storage="/tmp"))
show("allow_multiple", lambda: ray.init(allow_multiple=True))
show("positional", lambda: ray.init("local", 1))
print(ray.is_initialized())
