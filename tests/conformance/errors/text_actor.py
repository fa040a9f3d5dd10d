# The text of an actor method's error contains the repr of the actor.
import re
import ray


@ray.remote
class Shouter:
    def __repr__(self):
        return "Shouter(loud)"

    def shout(self):
        raise RuntimeError("HEY")


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(Shouter.remote().shout.remote())
except RuntimeError as error:
    lines = re.sub(r"\x1b\[\d+m", "", str(error)).splitlines()
    print(re.sub(r"[0-9a-f]{32}", "ID", re.sub(r"pid=\d+, ip=[\d.]+", "pid=N, ip=IP", lines[0])))
    print(
        lines[-1],
        [re.search(r"in (.*)", line).group(1) for line in lines if line.startswith("  File")],
    )
    print(error.actor_repr if hasattr(error, "actor_repr") else None)
