# An address where nobody listens.
# timeout: 90
import socket
import ray
from conform import show

with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
show("unreachable", lambda: ray.init(address=f"127.0.0.1:{port}"))
print(ray.is_initialized())
