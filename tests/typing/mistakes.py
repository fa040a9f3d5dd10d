"""Mistakes that type checkers must find (tests/python/test_typing.py).

They must report every line that ends with `# error`, and no other line.
"""

from __future__ import annotations

import ray
from ray.actor import ActorProxy


@ray.remote
def add(x: int, y: int = 2) -> int:
    return x + y


class Counter:
    @ray.method
    def total(self, scale: int, label: str = "") -> str:
        return label * scale


def calls() -> None:
    add.remote("1")  # error
    add.remote()  # error
    add.remote(1, z=3)  # error
    add.remote(ray.put("1"))  # error
    add.remote(1, 2, 3)  # error
    add(1)  # error
    ray.get(add.remote(1)).upper()  # error
    ray.get([add.remote(1)]).upper()  # error
    ray.get((add.remote(1),))  # error
    ray.wait(add.remote(1))  # error
    ray.wait([add.remote(1)], num_returns="1")  # error
    ray.init(num_cpus=1).address  # error
    text: str = ray.get(ray.put(1))  # error
    print(text)


def methods(counter: ActorProxy[Counter]) -> None:
    ray.get(counter.total.remote(2)).upper()
    counter.total.remote("2")  # error
    counter.total.remote(2, colour="red")  # error
    counter.no_such_method.remote()  # error
