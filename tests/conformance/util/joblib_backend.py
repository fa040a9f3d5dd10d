# joblib runs on the backend "ray".
# needs: extras
import ray
from conform import show

ray.init(num_cpus=2, include_dashboard=False)


def square(x):
    return x * x


def run():
    import joblib
    from ray.util.joblib import register_ray

    register_ray()
    with joblib.parallel_backend("ray"):
        return joblib.Parallel(n_jobs=2)(joblib.delayed(square)(i) for i in range(6))


show("parallel", run)
