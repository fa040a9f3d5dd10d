# The driver prints each failed attempt that will be followed by another, with its error.
import re
import subprocess
import sys
import tempfile

PROGRAM = """
import os, sys, time
import ray
ray.init(num_cpus=1, include_dashboard=False)
folder = sys.argv[1]


def first_time(name):
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


@ray.remote(max_retries=2)
def dies():
    if first_time("dies"):
        os._exit(1)
    return 1


@ray.remote(max_retries=3, retry_exceptions=True)
def raises():
    if first_time("raises"):
        raise ValueError("as asked")
    return 2


@ray.remote(max_retries=-1, retry_exceptions=[ValueError])
def always():
    if first_time("always"):
        raise ValueError("again and again")
    return 3


@ray.remote(max_retries=0)
def never():
    os._exit(1)


print(ray.get([dies.remote(), raises.remote(), always.remote()]))
try:
    ray.get(never.remote())
except ray.exceptions.WorkerCrashedError as error:
    print(type(error).__name__)
time.sleep(2)
"""
done = subprocess.run(
    [sys.executable, "-c", PROGRAM, tempfile.mkdtemp()], capture_output=True, text=True
)
# Not compared line by line: print() writes a text and its end in two steps, and another thread may
# print a notice in between.
print(
    done.returncode,
    [text for text in ("[1, 2, 3]", "WorkerCrashedError") if text in done.stdout],
)
print(
    sorted(
        set(
            re.findall(
                r"Task \S+ failed\. There are \S+ retries remaining, so the task will be retried\. Error:",
                done.stdout,
            )
        )
    )
)
print(
    [
        "ValueError: as asked" in done.stdout,
        "ValueError: again and again" in done.stdout,
    ]
)
