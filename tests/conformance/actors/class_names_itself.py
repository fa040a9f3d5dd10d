# The methods and the constructor of an actor class can make actors of the same class.
import ray
from conform import show


@ray.remote
class Copied:
    def __init__(self, n):
        self.n = n

    def get(self):
        return self.n

    def clone(self):
        return Copied.remote(self.n + 1)

    def named(self):
        return Copied.options(name="peer", get_if_exists=True).remote(self.n)


@ray.remote
class Tree:
    def __init__(self, depth=0):
        self.children = [Tree.remote(depth - 1) for _ in range(2)] if depth else []

    def size(self):
        return 1 + sum(ray.get([child.size.remote() for child in self.children]))


@ray.remote
def spawn():
    return ray.get(Copied.remote(7).get.remote())


def local():
    @ray.remote
    class Local:
        def get(self):
            return "local"

        def again(self):
            return ray.get(Local.remote().get.remote())

    return Local


ray.init(num_cpus=4, include_dashboard=False)
one, five = Copied.remote(1), Copied.remote(5)  # Actors that these make end with them.
show("clone", lambda: ray.get(ray.get(one.clone.remote()).get.remote()))
show("in a task", lambda: ray.get(spawn.remote()))
show("named", lambda: ray.get(ray.get(five.named.remote()).get.remote()))
show("tree", lambda: ray.get(Tree.remote(2).size.remote()))
show("local", lambda: ray.get(local().remote().again.remote()))
