# Ctrl-C during wait and during get of an actor's call is a KeyboardInterrupt.
import os
import signal
import threading
import time
import ray


@ray.remote
class A:
    def slow(self):
        time.sleep(1.5)
        return "done"


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ref = a.slow.remote()
for call in (lambda: ray.wait([ref]), lambda: ray.get(ref)):
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        call()
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
print(ray.get(ref))
