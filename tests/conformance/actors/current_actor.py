# An actor can get a handle to itself and its ids.
import ray
from conform import show


@ray.remote
class A:
    def me(self):
        return ray.get_runtime_context().current_actor

    def facts(self):
        context = ray.get_runtime_context()
        return (
            context.get_actor_id(),
            context.get_actor_name(),
            context.get_task_name(),
            context.was_current_actor_reconstructed,
        )

    def other(self):
        return "other"


ray.init(num_cpus=1, include_dashboard=False)
a = A.options(name="me").remote()
me = ray.get(a.me.remote())
print(me == a, ray.get(me.other.remote()))
found = ray.get(a.facts.remote())
print(found[0] == a._actor_id.hex(), *found[1:])
show("driver", lambda: ray.get_runtime_context().current_actor)
show("actor id of driver", lambda: ray.get_runtime_context().get_actor_id())
