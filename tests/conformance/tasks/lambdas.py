# Lambdas, nested functions and builtins are remote functions too.
import ray


def outer(k):
    def inner(x):
        return x * k

    return inner


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(ray.remote(lambda x: x + 1).remote(1)))
print(ray.get(ray.remote(outer(3)).remote(4)))
print(ray.get(ray.remote(num_cpus=1)(lambda: "options").remote()))
