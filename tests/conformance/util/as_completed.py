# as_completed and map_unordered give results in the order they are ready.
import ray
from conform import show
from ray.util import as_completed, map_unordered

ray.init(num_cpus=2, include_dashboard=False)


@ray.remote(max_retries=0)
def f(x):
    if x < 0:
        raise ValueError(x)
    return x * x


show("as_completed", lambda: sorted(as_completed([f.remote(i) for i in range(5)])))
show("chunks", lambda: sorted(as_completed([f.remote(i) for i in range(5)], chunk_size=2)))
show(
    "refs",
    lambda: sorted(
        ray.get(r) for r in as_completed([f.remote(i) for i in range(3)], yield_obj_refs=True)
    ),
)
show("empty", lambda: list(as_completed([])))
show("error", lambda: list(as_completed([f.remote(-1)])))
show("map_unordered", lambda: sorted(map_unordered(f, range(6), backpressure_size=3)))
show("bad chunk", lambda: list(as_completed([f.remote(1)], chunk_size=0)))
