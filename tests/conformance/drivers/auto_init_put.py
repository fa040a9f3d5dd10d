# put, get_actor and wait initialise the program too.
import ray
from conform import show

show("put", lambda: ray.get(ray.put(1)))
print(ray.is_initialized())
