# Ids can be made from other ids and name their parents.
import ray
from conform import show

job = ray.JobID.from_int(7)
driver = ray.TaskID.for_driver_task(job)
actor = ray.ActorID.of(job, driver, 1)
print(actor.job_id == job, driver.job_id() == job, actor.size(), driver.size())
show(
    "from_binary",
    lambda: (
        ray.ActorID.from_binary(actor.binary()) == actor,
        ray.TaskID.from_binary(driver.binary()) == driver,
    ),
)
show("another counter", lambda: ray.ActorID.of(job, driver, 2) == actor)
show("actor of a driver's task", lambda: driver.actor_id().is_nil())
show("ObjectID", lambda: ray.ObjectID is ray.ObjectRef)

ray.init(num_cpus=1)
ref = ray.put(1)
show("ObjectRef.from_binary", lambda: ray.ObjectRef.from_binary(ref.binary()) == ref)
show("its task", lambda: ref.task_id().job_id() == ref.job_id())
