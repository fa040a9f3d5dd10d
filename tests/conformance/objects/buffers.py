# bytes, bytearray, memoryview and PickleBuffer as values.
import pickle
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
for size in (3, 1_000_000):
    show("bytes", lambda: type(ray.get(ray.put(b"x" * size))).__name__)
    show(
        "bytearray",
        lambda: (
            type(ray.get(ray.put(bytearray(size)))).__name__,
            len(ray.get(ray.put(bytearray(size)))),
        ),
    )
    show("memoryview", lambda: type(ray.get(ray.put(memoryview(b"x" * size)))).__name__)
    show("PickleBuffer", lambda: type(ray.get(ray.put(pickle.PickleBuffer(b"x" * size)))).__name__)
