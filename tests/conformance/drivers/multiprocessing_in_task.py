# A task may use multiprocessing and subprocess.
import multiprocessing
import subprocess
import ray


@ray.remote
def f():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(abs, [-1, 2]), subprocess.run(
            ["echo", "hello"], capture_output=True, text=True
        ).stdout


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote(), timeout=120))
