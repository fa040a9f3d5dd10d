# A generator cannot be passed, pickled or put; get returns it unchanged.
import pickle
import ray
from conform import show


@ray.remote
def f():
    yield 1


ray.init(num_cpus=1, include_dashboard=False)
echo = ray.remote(lambda x: x)
generator = f.remote()
show("get", lambda: ray.get(generator) is generator)
show("get in list", lambda: ray.get([generator]))
show("argument", lambda: echo.remote(generator))
show("nested", lambda: echo.remote([generator]))
show("put", lambda: ray.put(generator))
show("pickle", lambda: pickle.dumps(generator))
