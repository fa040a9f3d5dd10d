# RAY_DEDUP_LOGS=0 prints every line.
# env: RAY_DEDUP_LOGS=0
import time
import ray


@ray.remote
class Talker:
    def talk(self):
        print("the same line")


ray.init(num_cpus=2, include_dashboard=False)
talkers = [Talker.remote() for _ in range(3)]
ray.get([t.__ray_ready__.remote() for t in talkers])
ray.get([t.talk.remote() for t in talkers])
time.sleep(2)
