# The prefix of a line is the task's name if it has one.
import time
import ray

ray.init(num_cpus=1, include_dashboard=False)


@ray.remote
def speak():
    print("named")


ray.get(speak.options(name="my task").remote())
time.sleep(1.5)
