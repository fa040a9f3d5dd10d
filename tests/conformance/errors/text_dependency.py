# The text of a task's error when its argument's task failed.
import re
import ray


@ray.remote(max_retries=0)
def bad():
    raise KeyError("source")


@ray.remote
def after(x):
    return x


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(after.remote(after.remote(bad.remote())))
except KeyError as error:
    text = re.sub(r"\x1b\[\d+m", "", str(error))
    print("At least one of the input arguments for this task could not be computed:" in text)
    print(re.findall(r"ray::(\w+)\(\)", text), text.splitlines()[-1])
