# Joining a cluster refuses nearly all arguments that describe a new one.
import subprocess
import sys
import ray

CHILD = """
import ray, sys
from conform import show
address = sys.argv[1]
for name, value in (("num_cpus", 1), ("num_gpus", 1), ("resources", {"a": 1}), ("object_store_memory", 10**8), ("labels", {"a": "b"}), ("_system_config", {}), ("_node_name", "x")):
    show(name, lambda: ray.init(address=address, logging_level="error", **{name: value}) and "accepted")
    ray.shutdown()
show("nothing", lambda: ray.init(address=address, logging_level="error") and "accepted")
"""
context = ray.init(num_cpus=1, include_dashboard=False)
done = subprocess.run(
    [sys.executable, "-c", CHILD, context.address_info["address"]], capture_output=True, text=True
)
print(done.stdout, end="")
print(done.returncode)
