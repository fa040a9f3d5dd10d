# multiprocessing.Pool: initializer, callbacks, context manager.
import threading
import ray
from ray.util.multiprocessing import Pool


def prepare(x):
    import builtins

    builtins.prepared = x


def read(_):
    import builtins

    return builtins.prepared


ray.init(num_cpus=2, include_dashboard=False)
done = threading.Event()
values = []
with Pool(2, initializer=prepare, initargs=(7,)) as pool:
    print(pool.map(read, range(4)))
    pool.apply_async(read, (0,), callback=lambda value: (values.append(value), done.set())).get()
    print(done.wait(20), values)
    errors = threading.Event()
    result = pool.apply_async(int, ("x",), error_callback=lambda error: errors.set())
    print(errors.wait(20))
