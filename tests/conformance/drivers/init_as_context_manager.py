# `with ray.init():` shuts down at the end, also after an error.
import ray

try:
    with ray.init(num_cpus=1, include_dashboard=False):
        print(ray.get(ray.put(1)))
        raise KeyError("inside")
except KeyError:
    print(ray.is_initialized())
