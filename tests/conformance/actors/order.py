# Calls of one caller run in the order of submission, even if one waits for its argument.
import time
import ray


@ray.remote
class Log:
    def __init__(self):
        self.seen = []

    def add(self, x):
        self.seen.append(x)

    def read(self):
        return self.seen


@ray.remote
def slow(x):
    time.sleep(0.5)
    return x


ray.init(num_cpus=2, include_dashboard=False)
log = Log.remote()
log.add.remote(slow.remote("slow"))
for i in range(5):
    log.add.remote(i)
print(ray.get(log.read.remote()))
