# Functions of a program read from standard input work in tasks.
import subprocess
import sys

PROGRAM = """
import ray
k = 3
class P:
    def __init__(self, x): self.x = x
@ray.remote
def f(p):
    return P(p.x * k)
ray.init(num_cpus=1, include_dashboard=False, logging_level="error")
print(ray.get(f.remote(P(2))).x)
"""
print(
    subprocess.run([sys.executable, "-"], input=PROGRAM, capture_output=True, text=True).stdout,
    end="",
)
