# ActorPool without work, with timeouts, mixed orders, duplicates and failing calls.
import time
import ray
from conform import show
from ray.util import ActorPool


@ray.remote
class A:
    def slow(self, x):
        time.sleep(x)
        return x

    def bad(self, x):
        raise ValueError(x)


ray.init(num_cpus=1, include_dashboard=False)
actors = [A.remote(), A.remote()]
pool = ActorPool(actors)
show("nothing", pool.get_next)
show("nothing unordered", pool.get_next_unordered)
pool.submit(lambda a, v: a.slow.remote(v), 0.7)
show("timeout", lambda: pool.get_next(timeout=0.1))
show("later", pool.get_next)
show("push busy", lambda: pool.push(actors[0]))
show("pop idle", lambda: [pool.pop_idle() in actors, pool.pop_idle() in actors, pool.pop_idle()])
show("free", pool.has_free)
pool.push(actors[0])
pool.submit(lambda a, v: a.bad.remote(v), 1)
show("error", pool.get_next)
pool.submit(lambda a, v: a.slow.remote(v), 0)
pool.submit(lambda a, v: a.slow.remote(v), 0)
show("unordered", pool.get_next_unordered)
show("ordered after unordered", pool.get_next)
