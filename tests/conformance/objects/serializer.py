# register_serializer and deregister_serializer.
import threading
import ray
from conform import show


class Thing:
    def __init__(self, x):
        self.x = x
        self.lock = threading.Lock()


ray.init(num_cpus=1, include_dashboard=False)
show("before", lambda: ray.put(Thing(1)))
ray.util.register_serializer(
    Thing, serializer=lambda thing: thing.x, deserializer=lambda x: Thing(x * 10)
)
show("put", lambda: ray.get(ray.put(Thing(2))).x)
show("through a task", lambda: ray.get(ray.remote(lambda thing: thing.x).remote(Thing(3))))
ray.util.deregister_serializer(Thing)
show("after", lambda: ray.put(Thing(1)))
