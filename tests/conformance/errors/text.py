# The text of a task's error has a first line, the user's frames and the last line.
import re
import ray


def helper(x):
    raise ValueError(f"boom {x}")


@ray.remote(max_retries=0)
def f(x):
    return helper(x)


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(f.remote(3))
except ValueError as error:
    lines = re.sub(r"\x1b\[\d+m", "", str(error)).splitlines()
    print(re.sub(r"\d+", "N", lines[0]))
    print(*[line for line in lines[1:] if not line.startswith("  File")], sep="\n")
    print([re.search(r"in (.*)", line).group(1) for line in lines if line.startswith("  File")])
