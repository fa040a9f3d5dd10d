# SIGTERM ends the driver in order: finally blocks and atexit functions run.
import atexit
import os
import signal
import time
import ray

ray.init(num_cpus=1, include_dashboard=False)
atexit.register(lambda: print("atexit", flush=True))
try:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
finally:
    print("finally", flush=True)
