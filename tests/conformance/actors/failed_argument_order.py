# A call whose argument failed does not run and does not hold up later calls.
import ray
from conform import show


@ray.remote(max_retries=0)
def bad():
    raise ValueError("bad argument")


@ray.remote
class Log:
    def __init__(self):
        self.seen = []

    def add(self, x):
        self.seen.append(x)
        return list(self.seen)


ray.init(num_cpus=1, include_dashboard=False)
log = Log.remote()
a, b, c = log.add.remote(1), log.add.remote(bad.remote()), log.add.remote(3)
for ref in (a, b, c):
    show("call", lambda: ray.get(ref))
