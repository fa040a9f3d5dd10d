# address="auto" finds a cluster that another driver's init() started.
# needs: alone
import subprocess
import sys
import ray

CHILD = """
import ray
from conform import show
show("auto", lambda: ray.init(address="auto", logging_level="error") and ray.get_runtime_context().get_node_id())
"""
ray.init(num_cpus=1, include_dashboard=False)
mine = ray.get_runtime_context().get_node_id()
print(
    subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True).stdout.replace(
        mine, "the same node"
    ),
    end="",
)
