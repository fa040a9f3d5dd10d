# ActorPool queues submissions when all actors are busy.
import ray
from ray.util import ActorPool


@ray.remote
class A:
    def m(self, x):
        return x


ray.init(num_cpus=1, include_dashboard=False)
pool = ActorPool([A.remote()])
for i in range(5):
    pool.submit(lambda a, v: a.m.remote(v), i)
values = []
while pool.has_next():
    values.append(pool.get_next())
print(values, pool.has_free(), pool.pop_idle() is not None)
