# max_pending_calls makes .remote() refuse further queued calls.
import time
import ray
from conform import show


@ray.remote(max_pending_calls=2)
class A:
    def slow(self):
        time.sleep(0.5)
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ray.get(a.slow.remote())
refs = []


def flood():
    for _ in range(10):
        refs.append(a.slow.remote())


show("flood", flood)
print(len(refs), ray.get(refs))
show("after", lambda: ray.get(a.slow.remote()))
