# init() without an address follows RAY_ADDRESS; "local" starts a new cluster.
import os
import subprocess
import sys
import ray

CHILD = """
import ray, sys
context = ray.init(*sys.argv[1:], logging_level="error", include_dashboard=False)
print(ray.get_runtime_context().get_node_id())
"""
context = ray.init(num_cpus=1, include_dashboard=False)
mine = ray.get_runtime_context().get_node_id()
env = dict(os.environ, RAY_ADDRESS=context.address_info["address"])
for arguments in ([], ["auto"], ["local"]):
    out = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments], env=env, capture_output=True, text=True
    ).stdout.split()
    print(arguments, out == [mine], len(out))
