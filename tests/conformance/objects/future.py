# ref.future() is a concurrent future with errors, timeouts and callbacks.
import concurrent.futures
import threading
import time
import ray
from conform import show


@ray.remote(max_retries=0)
def f(x):
    if x < 0:
        raise ValueError("negative")
    return x


ray.init(num_cpus=1, include_dashboard=False)
future = f.remote(1).future()
print(isinstance(future, concurrent.futures.Future), future.result(timeout=120), future.done())
show("error", lambda: f.remote(-1).future().result(timeout=120))
show("exception", lambda: type(f.remote(-1).future().exception(timeout=120)).__name__)
show("timeout", lambda: ray.remote(lambda: time.sleep(20)).remote().future().result(timeout=0.2))
called = threading.Event()
ray.put(1).future().add_done_callback(lambda done: called.set())
print(called.wait(20))
done, pending = concurrent.futures.wait([ray.put(i).future() for i in range(3)], timeout=120)
print(len(done), len(pending))
