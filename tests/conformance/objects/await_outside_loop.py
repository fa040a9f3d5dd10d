# as_future() and __await__ exist outside of an event loop; a ref cannot be iterated.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put(1)
show("as_future", lambda: ref.as_future() and "made")
show("awaitable", lambda: hasattr(ref, "__await__"))
show("iterate", lambda: list(ref))
