# If a constructor's argument failed, calls fail with the actor's death, reported once.
import subprocess
import sys

PROGRAM = """
import time
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)


@ray.remote
class C:
    def __init__(self, x):
        pass

    def m(self):
        return 1


@ray.remote
def fails():
    raise ValueError("as asked")


for argument in (fails.remote(), [fails.remote()][0]):
    try:
        print(ray.get(C.remote(argument).m.remote(), timeout=120))
    except ray.exceptions.RayError as error:
        print(type(error).__name__, "as asked" in str(error))
    del argument
time.sleep(1)
"""
done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
print(done.stdout)
print("unhandled:", "Unhandled error" in done.stderr)
