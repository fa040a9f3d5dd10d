# A top-level ref becomes its value, positional or keyword; one inside a container stays a ref.
import ray


@ray.remote
def f(x, y=None, *rest, **more):
    return [type(v).__name__ for v in (x, y, *rest, *more.values())]


ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put("value")
print(ray.get(f.remote(ref, ref, ref, k=ref)))
print(ray.get(f.remote([ref], {"a": ref}, (ref,), k={ref})))


@ray.remote
def deep(box):
    return ray.get(box[0]["k"][0])


print(ray.get(deep.remote([{"k": (ref,)}])))
