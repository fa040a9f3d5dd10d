# Actors can make actors and call back into their caller.
import ray


@ray.remote
class Child:
    def ask(self, parent):
        return ray.get(parent.number.remote())


@ray.remote
class Parent:
    def __init__(self):
        self.child = Child.remote()

    async def number(self):
        return 7

    async def go(self):
        return await self.child.ask.remote(ray.get_runtime_context().current_actor)


ray.init(num_cpus=2, include_dashboard=False)
print(ray.get(Parent.remote().go.remote(), timeout=120))
