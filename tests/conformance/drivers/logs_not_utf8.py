# Output that is not UTF-8 gets replacement characters and costs no other line.
import os
import subprocess
import sys
import time

PROGRAM = """
import os, time
import ray
ray.init(num_cpus=2, include_dashboard=False)


@ray.remote
def good():
    print("important progress", flush=True)
    time.sleep(0.5)
    print("done", flush=True)


@ray.remote
def bad():
    os.write(1, b"caf\\xe9 one\\n")
    time.sleep(0.5)
    os.write(1, b"caf\\xe9 two\\n")


@ray.remote
def large():
    print("[" + "v" * 300_000 + "]")


ray.get([good.remote(), bad.remote()])
ray.get(large.remote())
time.sleep(2)
"""
done = subprocess.run(
    [sys.executable, "-X", "utf8", "-c", PROGRAM],
    env={**os.environ, "RAY_DEDUP_LOGS": "0", "RAY_COLOR_PREFIX": "0"},
    capture_output=True,
)
lines = [
    line.rpartition(b") ")[2].decode(errors="replace").strip() for line in done.stdout.splitlines()
]
print(sorted(line for line in lines if len(line) < 1000))
print([(len(line), line[0], line[-1]) for line in lines if len(line) >= 1000])
