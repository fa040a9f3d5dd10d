# Ctrl-C during get is a KeyboardInterrupt, and the driver goes on.
import os
import signal
import threading
import time
import ray

ray.init(num_cpus=1, include_dashboard=False)
f = ray.remote(lambda x: time.sleep(x) or "done")
ref = f.remote(1.5)
threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    ray.get(ref)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
print(ray.get(ref))
