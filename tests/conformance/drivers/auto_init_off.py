# With RAY_ENABLE_AUTO_CONNECT=0, no call initialises the program.
# env: RAY_ENABLE_AUTO_CONNECT=0
import ray
from conform import show

show("put", lambda: ray.put(1))
show("remote", lambda: ray.remote(lambda: 1).remote())
print(ray.is_initialized())
