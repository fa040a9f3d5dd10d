# Timeouts of ray.get: zero, negative, fractions and wrong types.
import time
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ready = ray.put(1)
late = ray.remote(lambda: time.sleep(20)).remote()
show("zero ready", lambda: ray.get(ready, timeout=0))
show("zero late", lambda: ray.get(late, timeout=0), "some object(s) not ready")
show("short", lambda: ray.get([ready, late], timeout=0.1))
show("minus one", lambda: ray.get(ready, timeout=-1))
show("minus two", lambda: ray.get(ready, timeout=-2))
show("none", lambda: ray.get(ready, timeout=None))
show("string", lambda: ray.get(ready, timeout="1"))
