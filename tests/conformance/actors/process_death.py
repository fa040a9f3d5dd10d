# When the process is killed, calls in flight and later calls fail, and the error says why.
import os
import ray
from conform import show


@ray.remote
class A:
    def die(self):
        os.kill(os.getpid(), 9)

    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show(
    "die",
    lambda: ray.get(a.die.remote(), timeout=120),
    "The actor died unexpectedly before finishing this task.",
)
try:
    ray.get(a.m.remote(), timeout=120)
except ray.exceptions.RayActorError as error:
    lines = str(error).splitlines()
    print(type(error).__name__, lines[0])
    print([line.strip().split(":")[0] for line in lines if line.startswith("\t")][:2])
    print(
        error.actor_id == a._actor_id.hex(),
        error.actor_init_failed,
        error.preempted,
        isinstance(error.error_msg, str),
    )
