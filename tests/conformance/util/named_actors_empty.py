# list_named_actors when there are none, and its wrong use.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
show("none", lambda: ray.util.list_named_actors())
show("all", lambda: ray.util.list_named_actors(all_namespaces=True))
