"""Measures what users notice first, in whole programs.

That is import, init, first result, 20 actors, 100,000 tiny tasks, the items of a generator, and
the memory of an idle cluster. Prints and writes (--out) {name: value}; runs on any package that is
importable as `ray`.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

SQUARES = str(pathlib.Path(__file__).with_name("squares.py"))

INIT = """
import time; t0 = time.perf_counter()
import ray; t1 = time.perf_counter()
ray.init(); t2 = time.perf_counter()
@ray.remote
def f(): return 1
assert ray.get(f.remote()) == 1; t3 = time.perf_counter()
import json; print("RESULT", json.dumps([t1 - t0, t2 - t1, t3 - t2]))
"""

ACTORS = """
import time, ray
ray.init()
@ray.remote
class A:
    def m(self): return 1
t = time.perf_counter()
actors = [A.remote() for _ in range(20)]
assert ray.get([a.m.remote() for a in actors]) == [1] * 20
import json; print("RESULT", json.dumps(time.perf_counter() - t))
"""

TINY = """
import time, ray
ray.init(num_cpus=4)
@ray.remote
def tiny(x):
    time.sleep(0.0001)
    return x
t = time.perf_counter()
assert ray.get([tiny.remote(x) for x in range(100000)]) == list(range(100000))
import json; print("RESULT", json.dumps(time.perf_counter() - t))
"""

STREAM = """
import time, ray
ray.init(num_cpus=4)
@ray.remote
def items(n):
    for i in range(n):
        yield i
assert [ray.get(ref) for ref in items.remote(10)] == list(range(10))
t = time.perf_counter()
assert sum(ray.get(ref) for ref in items.remote(10000)) == 49995000
import json; print("RESULT", json.dumps(time.perf_counter() - t))
"""

SAME_ARRAY = """
import time, ray
import numpy as np
ray.init(num_cpus=4)
@ray.remote
def no_work(a): return
ray.get(no_work.remote(0))
a = np.zeros((5000, 5000))
t = time.perf_counter()
ray.get([no_work.remote(a) for _ in range(10)])
cold = time.perf_counter() - t
t = time.perf_counter()
ray.get([no_work.remote(a) for _ in range(10)])
import json; print("RESULT", json.dumps([cold, time.perf_counter() - t]))
"""

MEMORY = """
import os, ray, time
ray.init()
time.sleep(3)
def children(pid):
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{p}/stat").read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[1]) == pid:
            found += [int(p)] + children(int(p))
    return found
total, count, names = 0, 0, {}
for p in set(children(os.getpid())) | {os.getpid()}:
    try:
        private = sum(int(l.split()[1]) for l in open(f"/proc/{p}/smaps_rollup") if l.startswith("Private_"))
        name = open(f"/proc/{p}/comm").read().strip()
    except OSError:
        continue
    total += private; count += 1
    names[name] = names.get(name, 0) + private
import json; print("RESULT", json.dumps([total / 1024, count, names]))
"""


def run(code):
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    elapsed = time.perf_counter() - started
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:]), elapsed
    raise SystemExit(f"program failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    results = {}
    (imported, init, first), _ = run(INIT)
    results.update({"import ray s": imported, "ray.init() s": init, "first result s": first})
    times = []
    for _ in range(3):
        t = time.perf_counter()
        subprocess.run([sys.executable, SQUARES], check=True, capture_output=True)
        times.append(time.perf_counter() - t)
    results["squares.py whole process s"] = sorted(times)[1]
    results["20 actors created and called s"] = run(ACTORS)[0]
    results["100,000 tiny tasks s"] = run(TINY)[0]
    results["10,000 items of a generator s"] = run(STREAM)[0]
    cold, warm = run(SAME_ARRAY)[0]
    results.update(
        {
            "ten tasks with the same 200 MB array, cold s": cold,
            "ten tasks with the same 200 MB array, warm s": warm,
        }
    )
    megabytes, count, names = run(MEMORY)[0]
    results.update({"idle cluster unshared MB": megabytes, "idle cluster processes": count})
    for name, value in results.items():
        print(f"{name:50s} {value:10.3f}")
    print("unshared kB by process name:", names)
    if args.out:
        with open(args.out, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
