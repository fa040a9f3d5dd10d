# num_returns=n gives n refs for any sequence of n values; n=1 keeps the value whole.
import ray


@ray.remote
def f(kind):
    return kind([1, 2, 3])


ray.init(num_cpus=1, include_dashboard=False)
for kind in (tuple, list):
    refs = f.options(num_returns=3).remote(kind)
    print(type(refs).__name__, len(refs), ray.get(refs))
print(ray.get(f.remote(tuple)), ray.get(f.options(num_returns=1).remote(list)))
a, b, c = f.options(num_returns=3).remote(tuple)
print(ray.get(c), ray.get(a))
