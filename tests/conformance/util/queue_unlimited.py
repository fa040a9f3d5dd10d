# A Queue without a limit takes None and refs as items.
import ray
from ray.util.queue import Queue

ray.init(num_cpus=1, include_dashboard=False)
queue = Queue()
for item in (None, [1], ray.put("ref")):
    queue.put(item)
print(queue.full(), queue.qsize(), queue.get(), queue.get(), type(queue.get()).__name__)
