# A call that does not fit the signature fails at .remote(), before anything runs.
import ray
from conform import show


@ray.remote
def f(a, b=2, *, c=3):
    return a, b, c


ray.init(num_cpus=1, include_dashboard=False)
show("missing", lambda: f.remote(), "missing a required argument", "'a'")
show("too many", lambda: f.remote(1, 2, 3), "too many positional arguments")
show("unknown", lambda: f.remote(1, d=4), "unexpected keyword argument", "'d'")
show("twice", lambda: f.remote(1, a=2), "multiple values for argument", "'a'")
show("options too", lambda: f.options(num_cpus=0).remote(), "missing a required argument")
