# Several threads of the driver may call through one handle.
import threading
import ray


@ray.remote
class Counter:
    def __init__(self):
        self.n = 0

    def up(self):
        self.n += 1
        return self.n


ray.init(num_cpus=1, include_dashboard=False)
counter = Counter.remote()
results = []


def work():
    results.extend(ray.get([counter.up.remote() for _ in range(20)]))


threads = [threading.Thread(target=work) for _ in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results) == list(range(1, 101)))
