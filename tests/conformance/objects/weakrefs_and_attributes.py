# Weak references to refs and attributes on them.
import weakref
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put(1)
show("attribute", lambda: setattr(ref, "x", 1))
show("weakref", lambda: weakref.ref(ref)() is ref)
show("callable", lambda: ref())
show("less", lambda: ref < ref)
