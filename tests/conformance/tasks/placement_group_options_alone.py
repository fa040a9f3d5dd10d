# The options of placement groups on a task that is in none.
import ray
from conform import show


@ray.remote
def f():
    return 1


@ray.remote
class A:
    def m(self):
        return 1


ray.init(num_cpus=1)
for what, call in (
    ("task", lambda **options: ray.get(f.options(**options).remote())),
    ("actor", lambda **options: ray.get(A.options(**options).remote().m.remote())),
):
    show(f"{what} placement_group_bundle_index -1", lambda: call(placement_group_bundle_index=-1))
    show(f"{what} placement_group_bundle_index 0", lambda: call(placement_group_bundle_index=0))
    show(
        f"{what} placement_group_capture_child_tasks",
        lambda: call(placement_group_capture_child_tasks=True),
    )
    show(
        f"{what} no placement_group",
        lambda: call(placement_group=None, placement_group_bundle_index=0),
    )
