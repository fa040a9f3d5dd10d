# A piece of output without a newline becomes a line if nothing follows it.
import time
import ray


@ray.remote
def speak(i):
    print(f"no newline {i}", end="", flush=True)


@ray.remote
class Talker:
    def dots(self):
        print("dots", end="", flush=True)


ray.init(num_cpus=1, include_dashboard=False)
for i in range(2):
    ray.get(speak.remote(i))
    time.sleep(1)
talker = Talker.remote()
for _ in range(2):
    ray.get(talker.dots.remote())
    time.sleep(1)
