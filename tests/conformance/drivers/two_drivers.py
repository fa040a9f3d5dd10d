# Two drivers on one cluster are different jobs; they share actors in equal namespaces only.
import subprocess
import sys
import ray

CHILD = """
import ray, sys
ray.init(address=sys.argv[1], namespace=sys.argv[2], log_to_driver=False, logging_level="error")
print(ray.get_runtime_context().get_job_id())
try:
    print(ray.get(ray.get_actor("a").m.remote()))
except ValueError as error:
    print(type(error).__name__)
"""


@ray.remote
class A:
    def m(self):
        return "found"


context = ray.init(num_cpus=1, namespace="one", include_dashboard=False)
a = A.options(name="a").remote()
for namespace in ("one", "two"):
    out = subprocess.run(
        [sys.executable, "-c", CHILD, context.address_info["address"], namespace],
        capture_output=True,
        text=True,
    ).stdout.split()
    print(out[0] != ray.get_runtime_context().get_job_id(), out[1])
