# A caught task error can be pickled, returned and raised again.
import pickle
import ray
from conform import facts, show


@ray.remote(max_retries=0)
def bad():
    raise ValueError("travels")


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(bad.remote())
except ValueError as error:
    kept = error
show("pickle", lambda: facts(pickle.loads(pickle.dumps(kept))))
show("as argument", lambda: ray.get(ray.remote(lambda e: isinstance(e, ValueError)).remote(kept)))
show("as value", lambda: facts(ray.get(ray.put(kept))))
