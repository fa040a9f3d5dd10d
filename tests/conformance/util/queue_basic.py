# A Queue keeps the order, has a size, and may be full or empty.
import ray
from conform import show
from ray.util.queue import Empty, Full, Queue

ray.init(num_cpus=1, include_dashboard=False)
queue = Queue(maxsize=2)
show("empty", lambda: (queue.empty(), queue.full(), queue.qsize(), queue.size(), len(queue)))
queue.put(1)
queue.put(2)
show("full", lambda: (queue.empty(), queue.full(), queue.qsize()))
show("put full", lambda: queue.put(3, block=False))
show("put_nowait full", lambda: queue.put_nowait(3))
show("put timeout", lambda: queue.put(3, timeout=0.1))
show("get", lambda: (queue.get(), queue.get(timeout=120)))
show("get empty", lambda: queue.get(block=False))
show("get_nowait empty", lambda: queue.get_nowait())
show("get timeout", lambda: queue.get(timeout=0.1))
show("negative timeout", lambda: queue.get(timeout=-1))
show("negative put timeout", lambda: queue.put(1, timeout=-1))
