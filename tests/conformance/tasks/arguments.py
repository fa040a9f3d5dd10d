# Defaults, keywords, *args, **kwargs and keyword-only arguments arrive as in a local call.
import ray


@ray.remote
def f(a, b=2, *args, c, d=4, **kwargs):
    return a, b, args, c, d, sorted(kwargs.items())


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote(1, c=3)))
print(ray.get(f.remote(1, 5, 6, 7, c=3, e=8)))
print(ray.get(f.remote(c=3, a=1, z=9, num_cpus=5, name="x")))
print(ray.get(f.remote(*[1, 2, 3], **{"c": 4, "self": 5})))
