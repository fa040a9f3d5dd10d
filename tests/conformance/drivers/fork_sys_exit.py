# A forked child that ends with sys.exit: the atexit handlers of Ray do not end the parent's session.
import os
import sys
import ray

ray.init(num_cpus=1, include_dashboard=False)
pid = os.fork()
if pid == 0:
    sys.exit(0)
os.waitpid(pid, 0)
print(ray.get(ray.remote(lambda: "still here").remote(), timeout=20))
