# After a failed run its workers, its group and its resources are free.
import ray
from conform import show
import ray.train.collective
from ray import train
from training import fit, show_failure, start
from waiting import until


def loop():
    train.report({"a": 1})
    if train.get_context().get_world_rank() == 1:
        raise ValueError("no")
    train.collective.barrier()


start()
show_failure("fit", lambda: fit(loop, 2))
until(lambda: ray.available_resources().get("CPU") == 4)
show("groups", lambda: {row["state"] for row in ray.util.placement_group_table().values()})
show("next", lambda: fit(lambda: "ran", 2, name="next").return_value)
until(lambda: ray.available_resources().get("CPU") == 4)
show("groups", lambda: {row["state"] for row in ray.util.placement_group_table().values()})
