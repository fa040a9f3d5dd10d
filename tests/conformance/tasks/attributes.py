# A remote function looks like the function it wraps.
import ray
from conform import show


@ray.remote
def add(x: int, y: int = 2) -> int:
    """Adds."""
    return x + y


show("name", lambda: add.__name__)
show("doc", lambda: add.__doc__ == "Adds.")
show("module", lambda: add.__module__ == __name__)
show("type", lambda: type(add).__name__)
show("is RemoteFunction", lambda: isinstance(add, ray.remote_function.RemoteFunction))
show("has remote", lambda: callable(add.remote) and callable(add.options) and callable(add.bind))
