# put of an unpicklable value is a TypeError with a report.
import threading
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
show("lock", lambda: ray.put(threading.Lock()), "lock")
show("nested", lambda: ray.put({"a": [threading.Lock()]}), "lock")
show("generator", lambda: ray.put(i for i in range(3)), "generator")
show("lambda with lock", lambda: ray.put((lambda l: lambda: l)(threading.Lock())), "lock")
show("file", lambda: ray.put(open("/dev/null")))
