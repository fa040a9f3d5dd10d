# atexit functions that are registered after `import ray` still find the cluster.
import atexit
import ray


def at_end(where):
    print(
        where,
        ray.is_initialized(),
        ray.get(ray.remote(lambda: 1).remote()),
        ray.get(ref),
        flush=True,
    )


atexit.register(at_end, "before init")
ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put("value")
atexit.register(at_end, "after init")
