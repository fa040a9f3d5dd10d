# ray._private.state returns actors and jobs.
import ray
from conform import show


@ray.remote
class A:
    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ray.get(a.m.remote())


def actors():
    table = ray._private.state.actors()
    entry = table[a._actor_id.hex()]
    return sorted(entry), entry["State"], entry["ActorClassName"], entry["NumRestarts"]


show("actors", actors)
show("one", lambda: ray._private.state.actors(a._actor_id.hex())["State"])
show("jobs", lambda: (len(ray._private.state.jobs()) >= 1, sorted(ray._private.state.jobs()[0])))
