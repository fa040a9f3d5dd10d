# A line that came from two processes is printed twice, without a count.
import time
import ray


@ray.remote
class Talker:
    def talk(self):
        print("the same line")


ray.init(num_cpus=2, include_dashboard=False)
talkers = [Talker.remote() for _ in range(2)]
ray.get([t.__ray_ready__.remote() for t in talkers])
ray.get([t.talk.remote() for t in talkers])
time.sleep(7)
