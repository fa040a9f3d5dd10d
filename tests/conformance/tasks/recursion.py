# Recursion on one CPU: a worker that waits gives its CPU back.
import ray


@ray.remote
def fib(n):
    return n if n < 2 else sum(ray.get([fib.remote(n - 1), fib.remote(n - 2)]))


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(fib.remote(4)))
