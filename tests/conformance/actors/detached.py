# A detached actor outlives its handles and its job, and dies by ray.kill.
import subprocess
import sys
import ray
from conform import show

CHILD = """
import sys
import ray
ray.init(address=sys.argv[1], namespace="n", log_to_driver=False)
@ray.remote(num_cpus=0)
class A:
    def m(self):
        return "from the other job"
keep = [A.options(name="detached", lifetime="detached").remote(), A.options(name="attached").remote()]
ray.get([a.m.remote() for a in keep])
"""
context = ray.init(num_cpus=1, namespace="n", include_dashboard=False)
subprocess.run(
    [sys.executable, "-c", CHILD, context.address_info["address"]],
    check=True,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
show("detached", lambda: ray.get(ray.get_actor("detached").m.remote()))
import time


def attached():
    for _ in range(500):
        ray.get_actor("attached")
        time.sleep(0.02)


show("attached", attached)
ray.kill(ray.get_actor("detached"))
