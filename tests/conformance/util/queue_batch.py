# A Queue takes batches that fit and refuses those that do not.
import ray
from conform import show
from ray.util.queue import Queue

ray.init(num_cpus=1, include_dashboard=False)
queue = Queue(maxsize=3)
show("put", lambda: queue.put_nowait_batch([1, 2]))
show("too many", lambda: queue.put_nowait_batch([3, 4]))
show("size", queue.qsize)
show("get", lambda: queue.get_nowait_batch(2))
show("get too many", lambda: queue.get_nowait_batch(1))
show("not a list", lambda: queue.put_nowait_batch(5))
show("not a number", lambda: queue.get_nowait_batch("a"))
