# multiprocessing.Pool has the maps and applies of the standard library.
import ray
from conform import show
from ray.util.multiprocessing import Pool


def square(x):
    return x * x


def add(x, y=0):
    return x + y


ray.init(num_cpus=2, include_dashboard=False)
pool = Pool(2)
print(
    pool.map(square, range(6)), pool.starmap(add, [(1, 2), (3, 4)]), pool.apply(add, (1,), {"y": 5})
)
print(list(pool.imap(square, range(4))), sorted(pool.imap_unordered(square, range(4))))
result = pool.map_async(square, range(3))
print(result.get(timeout=120), result.ready(), result.successful())
print(
    pool.map(square, []),
    pool.map(square, range(5), chunksize=2),
    pool.starmap_async(add, [(1, 1)]).get(),
)
pool.close()
pool.join()
show("after close", lambda: pool.map(square, [1]))
