# Recursion works on one CPU, because a worker that waits lends its CPU.
import ray


@ray.remote
def fib(n):
    return n if n < 2 else sum(ray.get([fib.remote(n - 1), fib.remote(n - 2)]))


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(fib.remote(4)))
