# init refuses malformed addresses.
import ray
from conform import show

show("nonsense", lambda: ray.init(address="not an address"))
show("unknown scheme", lambda: ray.init(address="nosuchscheme://x"))
show("empty port", lambda: ray.init(address="127.0.0.1"))
print(ray.is_initialized())
