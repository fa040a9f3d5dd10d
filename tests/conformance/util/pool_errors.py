# multiprocessing.Pool: errors, timeouts, sizes, misuse.
import time
import ray
from conform import show
from ray.util.multiprocessing import Pool, TimeoutError


def bad(x):
    raise KeyError(x)


def slow(x):
    time.sleep(x)
    return x


ray.init(num_cpus=2, include_dashboard=False)
show("zero", lambda: Pool(0))
show("negative", lambda: Pool(-1))
show("too many", lambda: Pool(100))
show("string", lambda: Pool("2"))
pool = Pool(2)
show("map", lambda: pool.map(bad, [1]))
show("apply", lambda: pool.apply(bad, (1,)))
result = pool.apply_async(slow, (1,))
show("timeout", lambda: result.get(timeout=0.1))
show("successful early", lambda: result.successful())
show("later", lambda: result.get(timeout=120))
failed = pool.apply_async(bad, (1,))
failed.wait(30)
show("successful", failed.successful)
show("join open", pool.join)
pool.terminate()
pool.join()
