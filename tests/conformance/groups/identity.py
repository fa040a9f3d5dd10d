# A group is equal to its copies, and hashes by its id.
import copy
import pickle
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=2, include_dashboard=False)
group, other = placement_group([{"CPU": 1}]), placement_group([{"CPU": 1}])
again = pickle.loads(pickle.dumps(group))
show("pickled", lambda: (again == group, hash(again) == hash(group), again.bundle_specs))
show("copied", lambda: (copy.copy(group) == group, copy.deepcopy(group) == group))
show("others", lambda: (group == other, group != other, group == "x", group is None))
show("in a set", lambda: len({group, again, other}))
show("id", lambda: (type(group.id).__name__, len(group.id.hex()), again.id == group.id))
show("id of the job", lambda: group.id.hex()[-8:])
show("repr", lambda: repr(group).split(" object at")[0])
