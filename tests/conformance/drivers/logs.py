# Output of workers reaches the driver's stdout and stderr with a prefix.
import sys
import time
import ray


@ray.remote
def speak():
    print("to stdout")
    print("to stderr", file=sys.stderr)


@ray.remote
class Talker:
    def talk(self):
        print("from an actor")


@ray.remote
class Named:
    def __repr__(self):
        return "Named(7)"

    def talk(self):
        print("with a repr")


ray.init(num_cpus=1, include_dashboard=False)
ray.get(speak.remote())
time.sleep(1)
ray.get(Talker.remote().talk.remote())
time.sleep(1)
ray.get(Named.remote().talk.remote())
time.sleep(1.5)
