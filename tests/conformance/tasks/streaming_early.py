# Items of a stream are usable before the task ends.
import os
import tempfile
import time
import ray

gate = os.path.join(tempfile.mkdtemp(), "gate")


@ray.remote
def f():
    yield "first"
    while not os.path.exists(gate):
        time.sleep(0.01)
    yield "second"


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote()
print(ray.get(next(generator)))
print(generator.is_finished())
open(gate, "w").close()
print(ray.get(next(generator)))
print(list(generator), generator.is_finished())
