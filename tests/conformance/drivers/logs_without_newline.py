# Output without a final newline, empty lines and carriage returns arrive.
import sys
import time
import ray


@ray.remote
def speak():
    print("one\n\ntwo")
    sys.stdout.write("no newline")


ray.init(num_cpus=1, include_dashboard=False)
ray.get(speak.remote())
time.sleep(1.5)
