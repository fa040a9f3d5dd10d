# ray.remote(Class) leaves the plain class usable and may be called twice.
import ray


class A:
    def __init__(self, x=1):
        self.x = x

    def m(self):
        return self.x


ray.init(num_cpus=1, include_dashboard=False)
Remote = ray.remote(A)
Other = ray.remote(num_cpus=0)(A)
print(
    A(5).m(),
    ray.get(Remote.remote(6).m.remote()),
    ray.get(Other.remote().m.remote()),
    type(Remote).__name__.startswith("ActorClass"),
)
