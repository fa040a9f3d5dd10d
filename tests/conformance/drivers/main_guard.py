# Code under the main guard does not run in the workers.
import os
import tempfile
import ray


@ray.remote
def f():
    return __name__


if __name__ == "__main__":
    path = os.environ.setdefault("CONFORM_MAIN", tempfile.mkdtemp())
    open(os.path.join(path, str(os.getpid())), "w").close()
    ray.init(num_cpus=1, include_dashboard=False)
    ray.get(f.remote())
    print(len(os.listdir(path)))
