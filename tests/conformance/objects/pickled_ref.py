# A ref pickled by hand, also by plain pickle, works while its owner lives.
import pickle
import ray
import ray.cloudpickle as cloudpickle
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put("kept")
show("cloudpickle", lambda: ray.get(cloudpickle.loads(cloudpickle.dumps(ref))))
show("pickle", lambda: ray.get(pickle.loads(pickle.dumps(ref))))
show("equal", lambda: cloudpickle.loads(cloudpickle.dumps(ref)) == ref)
data = cloudpickle.dumps(ref)
del ref
show("after the ref is gone", lambda: ray.get(cloudpickle.loads(data)))
