# More of the runtime context's older names, on a driver and in an actor.
import ray
from conform import show


@ray.remote
class A:
    def m(self):
        context = ray.get_runtime_context()
        return (
            context.actor_id.hex() == context.get_actor_id(),
            context.current_placement_group_id is None
            or context.current_placement_group_id.is_nil(),
            sorted(context.get_resource_ids().items()),
        )


ray.init(num_cpus=1)
context = ray.get_runtime_context()
show("actor_id", lambda: context.actor_id)
show("current_placement_group_id", lambda: context.current_placement_group_id)
show("in an actor", lambda: ray.get(A.options(num_cpus=1).remote().m.remote()))
show("method", lambda: type(A.remote().m).__name__)
