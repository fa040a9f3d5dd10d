"""Python that C++ programs call (driver.cc, library.cc)."""

import ray


def increment(x):
    return x + 1


@ray.remote
def decorated(x):
    return x * x


def table(name, values):
    return {name: values}


def nothing():
    pass


def zeros(count):
    return bytes(count)


def fail(x):
    raise ValueError(f"x is {x}")


def a_set():
    return {1, 2}


def text():
    return "text"


def add_by_name(name, n):
    return ray.get(ray.get_actor(name).add.remote(n))


class Counter:
    def __init__(self, start):
        self.value = start

    def add(self, n):
        self.value += n
        return self.value

    def fail(self):
        raise KeyError("gone")
