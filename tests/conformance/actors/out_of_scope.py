# When the last handle is dropped, queued calls finish and the process leaves.
import os
import time
import ray


@ray.remote
class A:
    def pid(self):
        return os.getpid()

    def slow(self):
        time.sleep(0.3)
        return "slow"


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
pid = ray.get(a.pid.remote())
refs = [a.slow.remote() for _ in range(2)]
del a
print(ray.get(refs))
for _ in range(1000):
    if not os.path.exists(f"/proc/{pid}"):
        break
    time.sleep(0.02)
print(os.path.exists(f"/proc/{pid}"))
