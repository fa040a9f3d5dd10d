"""A whole program, as small as users write them: bench/programs.py times its process."""

import ray


@ray.remote
def square(number):
    return number * number


ray.init()
assert ray.get([square.remote(number) for number in range(4)]) == [0, 1, 4, 9]
