# ActorPool has ordered and unordered maps, submit and get_next.
import ray
from conform import show
from ray.util import ActorPool


@ray.remote
class A:
    def double(self, x):
        return 2 * x


ray.init(num_cpus=1, include_dashboard=False)
pool = ActorPool([A.remote(), A.remote()])
print(list(pool.map(lambda a, v: a.double.remote(v), [1, 2, 3, 4])))
print(sorted(pool.map_unordered(lambda a, v: a.double.remote(v), [1, 2, 3, 4])))
print(list(pool.map(lambda a, v: a.double.remote(v), [])))
pool.submit(lambda a, v: a.double.remote(v), 5)
print(pool.has_next(), pool.has_free(), pool.get_next(), pool.has_next())
